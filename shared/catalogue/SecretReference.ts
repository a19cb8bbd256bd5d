/** A reference to a secret in the catalogue: `${NAME}` is an environment variable, `${file:/path}` a file's content. */
export type SecretReference =
  | { readonly kind: "variable"; readonly name: string }
  | { readonly kind: "file"; readonly path: string }

/** What a reference looks like, for error messages. */
export const expected = "a reference such as ${NAME} or ${file:/path}, not the secret itself"

const variable = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/
const file = /^\$\{file:([^{}]+)\}$/

/** Parses a reference; `undefined` if the text is not one. */
export const parse = (text: string): SecretReference | undefined => {
  const name = variable.exec(text)?.[1]
  if (name !== undefined) return { kind: "variable", name }
  const path = file.exec(text)?.[1]
  return path === undefined ? undefined : { kind: "file", path }
}
