// A button that copies a text and confirms it, and a block of code with such a button.

import { useState } from 'preact/hooks';

export function CopyButton({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [said, setSaid] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid('Copied');
    } catch {
      setSaid('The browser does not let this page copy: select the text and copy it.');
    }
    setTimeout(() => setSaid(''), 2500);
  };
  return (
    <button type="button" class="quiet small" onClick={() => void copy()}>
      <span aria-live="polite">{said === '' ? label : said}</span>
    </button>
  );
}

export function CodeBlock({ code, label }: { readonly code: string; readonly label: string }) {
  return (
    <div class="code">
      <pre role="region" tabIndex={0} aria-label={label}>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} />
    </div>
  );
}
