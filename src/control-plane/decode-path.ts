// Reads a path parameter that is the rest of the path: a model's id, whose slashes may be escaped.

export function decodePath(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
