// Worker task: reads the conversation of an auto-routed request (spec 4.11). Off the event loop because a body can be a
// megabyte, or made to be slow to read.

import { prepareConversation } from '../src/domain/routing/conversation/prepare-conversation.ts';

export default prepareConversation;
