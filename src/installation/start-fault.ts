// The reason why an installation cannot start or a command cannot work, in words for the operator: printed as it is,
// without a stack.

export class StartFault extends Error {
  override readonly name = 'StartFault';
}
