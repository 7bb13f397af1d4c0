// Messages for the virtual model, whose texts tell the simulated judge how to answer.

export type Message = Readonly<Record<string, unknown>>;

export const user = (text: string): Message => ({ role: 'user', content: text });
export const assistant = (text: string): Message => ({ role: 'assistant', content: text });
/** Tells the simulated judge how to answer. */
export const judged = (words: string): string => `[[sim/systemone: ${words}]]`;
export const LIGHT = judged('tier=light:0.95 kind=prose');
export const STRONG = judged('tier=strong:0.95 kind=prose');
