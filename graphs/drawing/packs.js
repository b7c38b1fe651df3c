// What packing.py packs: trees one by one, and the chunk texts that they share.

async function unpack(pack) {
  const bytes = Uint8Array.from(atob(pack), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// Put the texts in the place of their numbers, in a query and all below it.
function fillIn(query, texts) {
  const fillInCalls = ({ said }) => {
    for (const call of said) for (const part of call.texts) if (typeof part[1] === "number") part[1] = texts[part[1]];
  };
  fillInCalls(query);
  for (const chunk of query.chunks) {
    chunk.text = texts[chunk.text];
    fillInCalls(chunk);
    chunk.sub_runs.forEach((query) => fillIn(query, texts));
  }
}
