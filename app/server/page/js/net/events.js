// Server-sent events out of a stream of bytes (https://html.spec.whatwg.org/multipage/server-sent-events.html).

/** @param {ReadableStream<Uint8Array>} body */
export async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let lines = [];
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = parts.pop();
      for (const line of parts) {
        if (line) lines.push(line);
        else if (lines.length) {
          const event = eventOf(lines);
          lines = [];
          if (event) yield event;
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function eventOf(lines) {
  const event = { event: "message", data: [], id: "" };
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon === 0) continue; // a comment keeps the connection open
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") event.data.push(value);
    else if (name === "event" || name === "id") event[name] = value;
  }
  return event.data.length ? { ...event, data: event.data.join("\n") } : null;
}
