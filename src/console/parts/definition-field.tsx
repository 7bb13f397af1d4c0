// A field in which a policy's definition is edited as JSON, with the syntax error below it.

import { useId } from 'preact/hooks';

interface DefinitionFieldProps {
  readonly label: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  /** Why the text cannot be read; null if it can. */
  readonly problem: string | null;
}

const ROWS_MAX = 32;

export function DefinitionField({ label, text, onText, problem }: DefinitionFieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        class="definition"
        rows={Math.min(ROWS_MAX, Math.max(8, text.split('\n').length + 1))}
        value={text}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={problem !== null}
        aria-describedby={`${id}-problem`}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      <div id={`${id}-problem`} role="status">
        {problem !== null && <p class="refused">{problem}</p>}
      </div>
    </div>
  );
}
