// Requests to the server. What it refuses, it says in a sentence, which is thrown as an error.

export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export async function ask(path, { json, body, params, signal, method = "POST" } = {}) {
  const query = params ? `?${new URLSearchParams(params)}` : "";
  const options = { method, signal };
  if (json !== undefined) {
    options.body = JSON.stringify(json);
    options.headers = { "content-type": "application/json" };
  } else if (body !== undefined) options.body = body;
  let answer;
  try {
    answer = await fetch(path + query, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer. Is it still running?");
  }
  if (!answer.ok) throw new Refused(answer.status, await sentenceOf(answer));
  return answer;
}

export const askJson = async (path, options) => (await ask(path, options)).json();

async function sentenceOf(answer) {
  try {
    return sentence((await answer.json()).error);
  } catch {
    return "The server refused the request.";
  }
}

// File names stay as they are; everything else begins with a capital letter.
export function sentence(line) {
  const named = /^[^:]+\.\w+ (is|has|cannot|marks) /.test(line);
  return (named ? line : line.charAt(0).toUpperCase() + line.slice(1)) + (/[.!?]$/.test(line) ? "" : ".");
}

// States of a photograph as they change. Connections that break are taken up again by the browser itself.
export function follow(id, { onState, onLost, onGone }) {
  const source = new EventSource(`/photos/${id}/events`);
  source.onmessage = (event) => onState(JSON.parse(event.data));
  source.onerror = () => (source.readyState === EventSource.CLOSED ? onGone() : onLost());
  return () => source.close();
}

export async function save(path, params) {
  const answer = await ask(path, { method: "GET", params });
  const name = /filename\*=utf-8''([^;]+)/i.exec(answer.headers.get("content-disposition") ?? "");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name ? decodeURIComponent(name[1]) : "picture";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
