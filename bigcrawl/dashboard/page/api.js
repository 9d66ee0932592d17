// Questions and changes. The token is kept for this tab only, and travels in a header.

const KEY = "bigcrawl-token";
const WAIT_MS = 30000; // a disk that hangs holds up no other answer

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (text) => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY)),
};

/** An answer that is an error: its status, 0 if the server does not answer, and its line. */
export class ApiError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function ask(path, options) {
  const headers = {...options.headers};
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  let answer, data;
  try {
    answer = await fetch(path, {...options, headers, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(WAIT_MS)});
    data = await answer.json();
  } catch {
    throw new ApiError(answer?.status ?? 0, "the server does not answer");
  }
  if (!answer.ok) throw new ApiError(answer.status, data.error ?? `status ${answer.status}`);
  return data;
}

/** What an action says; `query` are its word and options, of which empty ones are left out. */
export function look(action, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value != null);
  return ask(`/api/${action}?${new URLSearchParams(given)}`, {method: "GET"});
}

export function change(action, words, options = {}) {
  const body = JSON.stringify({words, options});
  return ask(`/api/${action}`, {method: "POST", headers: {"Content-Type": "application/json"}, body});
}
