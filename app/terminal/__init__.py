"""What commands share: output, progress, live trees, files of trees, exit statuses."""
