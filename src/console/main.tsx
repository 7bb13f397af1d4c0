// The entry point of the console: draws the application and starts the session.

import { render } from 'preact';
import { App } from './app.tsx';
import { startSession } from './state/session.ts';
import './style/style.css';

const root = document.getElementById('console');
if (root !== null) render(<App />, root);
void startSession();
