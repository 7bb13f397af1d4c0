// The frame of a screen (title, purpose, tools, commands that show the same), and the card, of which screens are made.

import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { CodeBlock } from './copy.tsx';

interface PageProps {
  readonly title: string;
  readonly lead?: ComponentChildren;
  readonly tools?: ComponentChildren;
  /** Commands for a terminal that show what the screen shows. */
  readonly commands?: readonly string[];
  readonly children: ComponentChildren;
}

export function Page({ title, lead, tools, commands = [], children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Tollgate`;
  }, [title]);
  return (
    <>
      <header class="page-head">
        <div>
          <h1>{title}</h1>
          {lead !== undefined && <p class="lead">{lead}</p>}
        </div>
        {tools !== undefined && <div class="tools">{tools}</div>}
      </header>
      {children}
      {commands.length > 0 && (
        <details class="command">
          <summary>As a command</summary>
          {commands.map((command, index) => (
            <CodeBlock key={index} code={command} label={`Command ${index + 1}`} />
          ))}
        </details>
      )}
    </>
  );
}

interface ActionButtonProps {
  readonly name: string;
  readonly onClick: () => void;
  /** The main action of the screen. */
  readonly isMain?: boolean;
}

/** A button in the tools of a page or card. */
export function ActionButton({ name, onClick, isMain = false }: ActionButtonProps) {
  return (
    <button type="button" class={isMain ? 'main' : undefined} onClick={onClick}>
      {name}
    </button>
  );
}

interface CardProps {
  readonly title?: string;
  readonly note?: ComponentChildren;
  readonly tools?: ComponentChildren;
  readonly class?: string;
  readonly children: ComponentChildren;
}

export function Card({ title, note, tools, class: name = '', children }: CardProps) {
  return (
    <section class={`card ${name}`}>
      {title !== undefined && (
        <header class="card-head">
          <div>
            <h2>{title}</h2>
            {note !== undefined && <p class="note">{note}</p>}
          </div>
          {tools}
        </header>
      )}
      {children}
    </section>
  );
}
