/**
 * How the catalogue names a secret without holding it: `${NAME}` is an environment variable, `${file:/path}` the content of
 * a file. Anything else is the secret itself.
 */
export type SecretReference =
  | { readonly kind: "variable"; readonly name: string }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "literal" }

const variable = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/
const file = /^\$\{file:([^{}]+)\}$/

/** What a secret must look like: a reference as a whole, or nothing that looks like one. */
export const pattern = /^(?:\$\{(?:[A-Za-z_][A-Za-z0-9_]*|file:[^{}]+)\}|(?!.*\$\{).+)$/

export const parse = (text: string): SecretReference => {
  const name = variable.exec(text)?.[1]
  if (name !== undefined) return { kind: "variable", name }
  const path = file.exec(text)?.[1]
  return path === undefined ? { kind: "literal" } : { kind: "file", path }
}
