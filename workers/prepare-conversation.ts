// Worker task: reads the conversation of an auto-routed request (spec 4.11). It runs off the event loop because a body
// can have a megabyte, or be crafted to be slow to read.

import { prepareConversation } from '../src/domain/routing/conversation/prepare-conversation.ts';

export default prepareConversation;
