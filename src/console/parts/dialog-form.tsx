// A dialog with a form, and a dialog that shows a secret once.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Answer } from '../api.ts';
import { mayLeave, useDraft } from '../state/drafts.ts';
import { CopyButton } from './copy.tsx';
import { Dialog, FormRefusal, useSubmit } from './form.tsx';

/** What a screen hands to a dialog that it opens. */
export interface DialogHandlers {
  readonly onDone: () => void;
  readonly onClose: () => void;
}

interface DialogFormProps<T> {
  readonly title: string;
  readonly verb: string;
  readonly send: () => Promise<Answer<T>>;
  readonly onDone: (data: T) => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function DialogForm<T>({ title, verb, send, onDone, onClose, children }: DialogFormProps<T>) {
  const { isBusy, refusal, run } = useSubmit<T>(onDone);
  const [isTyped, setTyped] = useState(false);
  useDraft(isTyped);
  return (
    <Dialog title={title} onClose={() => (!isTyped || mayLeave()) && onClose()}>
      <form
        onInput={() => setTyped(true)}
        onSubmit={(event) => {
          event.preventDefault();
          void run(send);
        }}
      >
        {children}
        <FormRefusal refusal={refusal} />
        <footer class="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="main" disabled={isBusy}>
            {verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

interface SecretProps {
  readonly title: string;
  readonly secret: string;
  readonly onClose: () => void;
}

export function SecretOnce({ title, secret, onClose }: SecretProps) {
  useDraft(true);
  return (
    <Dialog title={title}>
      <p>Copy it now: it is shown only once, and the gateway keeps no readable copy.</p>
      <code class="secret">{secret}</code>
      <CopyButton text={secret} />
      <footer class="dialog-foot">
        <button type="button" class="main" onClick={onClose}>
          I have it
        </button>
      </footer>
    </Dialog>
  );
}
