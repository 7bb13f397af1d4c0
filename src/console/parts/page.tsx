// The frame of a screen: its name, what it is for, its tools, and the same as a command.

import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { CodeBlock } from './copy.tsx';

interface PageProps {
  readonly title: string;
  readonly lead?: ComponentChildren;
  readonly tools?: ComponentChildren;
  /** What the screen shows, as lines for a terminal. */
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
