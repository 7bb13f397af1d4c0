// Lets TypeScript accept the import of a stylesheet, which the bundler resolves.

declare module '*.css' {}
