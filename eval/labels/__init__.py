"""Labels by hand: the passages to judge, the file of labels, what annotators agree on."""
