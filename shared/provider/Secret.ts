/** Secrets of the catalogue: `${NAME}` stands for an environment variable, so that the file itself holds none. */
import { Option, Redacted } from "effect"

const reference = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/

/** The value of a secret, or `None` where it names a variable that is not set. */
export const resolve = (
  text: string,
  environment: NodeJS.ProcessEnv = process.env
): Option.Option<Redacted.Redacted> => {
  const name = reference.exec(text)?.[1]
  const value = name === undefined ? text : environment[name]
  return value === undefined || value === "" ? Option.none() : Option.some(Redacted.make(value))
}
