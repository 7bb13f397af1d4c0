// A stylesheet is no module for the compiler; the bundler takes it.

declare module '*.css' {}
