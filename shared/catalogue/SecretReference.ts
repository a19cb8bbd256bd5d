/**
 * How the catalogue names a secret without holding it: `${NAME}` is an environment variable, `${file:/path}` the content of
 * a file.
 */
export type SecretReference =
  | { readonly kind: "variable"; readonly name: string }
  | { readonly kind: "file"; readonly path: string }

/** What belongs in the place of a secret, as errors say it. */
export const expected = "a reference such as ${NAME} or ${file:/path}, not the secret itself"

const variable = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/
const file = /^\$\{file:([^{}]+)\}$/

/** `undefined` for a text that is no reference. */
export const parse = (text: string): SecretReference | undefined => {
  const name = variable.exec(text)?.[1]
  if (name !== undefined) return { kind: "variable", name }
  const path = file.exec(text)?.[1]
  return path === undefined ? undefined : { kind: "file", path }
}
