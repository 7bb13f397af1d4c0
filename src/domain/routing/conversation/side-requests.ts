// Tells an agent's side requests (a title, a topic, a subagent's work) from the conversation whose session they share:
// such a request is a conversation of its own, known by its first message or by its agent.
//
// Recorded and published requests differ from the main loop in one of three ways. A subagent says so: Claude Code in a
// header, Codex by a thread of its own. A request for a title begins with words that the agent's author wrote. All the
// others offer no tools where the main loop does, which is remembered with each turn (turn-memory.ts).

/** opencode; Claude Code up to 2.0; Open WebUI. */
const SIDE_OPENINGS: readonly string[] = [
  'Generate a title for this conversation',
  'Please write a 5-10 word title for the following conversation',
  '### Task:\nGenerate ',
  '### Task:\nSuggest ',
];

export function isSideRequest(firstHumanText: string): boolean {
  return SIDE_OPENINGS.some((opening) => firstHumanText.startsWith(opening));
}

/** Claude Code names each of its subagents here, and its main loop not at all. */
const AGENT_HEADER = 'x-claude-code-agent-id';

export function sideAgentOf(header: (name: string) => string | null | undefined): string | null {
  return header(AGENT_HEADER)?.trim() || null;
}
