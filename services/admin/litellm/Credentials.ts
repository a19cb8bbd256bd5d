/** Turns LiteLLM's keys and base URLs into what the catalogue may hold: references to variables, and plain URLs. */
import type { Config } from "./Config.ts"
import type { Findings } from "./Findings.ts"

type Path = ReadonlyArray<PropertyKey>

/** A setting with its place in the file. */
export interface Placed {
  readonly value: string
  readonly path: Path
}

const reference = /^os\.environ\/([A-Za-z_]\w*)$/

/** Resolves variables, from the configuration first and then from the administrator's own environment. */
export class Credentials {
  readonly #environment: (name: string) => string | undefined
  readonly #findings: Findings
  readonly #config: Config
  /** The name of the variable that replaces each literal key. */
  readonly #literals = new Map<string, string>()
  readonly #used = new Set<string>()

  constructor(config: Config, environment: (name: string) => string | undefined, findings: Findings) {
    this.#config = config
    this.#environment = environment
    this.#findings = findings
  }

  /** The variables that the catalogue refers to. */
  get variables(): ReadonlyArray<string> {
    return [...this.#used].toSorted()
  }

  /** The value of a variable, from the configuration or the environment; `undefined` if it is not set. */
  valueOf(name: string | undefined): string | undefined {
    if (name === undefined) return undefined
    const own = this.#config.environment_variables?.[name]
    return own === undefined ? this.#environment(name) : String(own)
  }

  /** The first of these variables that is set, or else the first one; `undefined` for an empty list. */
  firstSet(names: ReadonlyArray<string>): string | undefined {
    return names.find((name) => (this.valueOf(name) ?? "") !== "") ?? names[0]
  }

  refer(variable: string): string {
    this.#used.add(variable)
    return `\${${variable}}`
  }

  /**
   * A reference to a key. A literal key gets a new variable, named after `variable` and a number, which the report states. Without
   * the number, the name could be that of the variable that LiteLLM reads for deployments without a key.
   */
  keyFrom({ path, value }: Placed, variable: string): string {
    const name = reference.exec(value)?.[1]
    if (name !== undefined) return this.refer(name)
    let literal = this.#literals.get(value)
    if (literal === undefined) {
      const taken = new Set(this.#literals.values())
      let count = 1
      while (taken.has(`${variable}_${count}`) || this.#isForeign(`${variable}_${count}`)) count += 1
      literal = `${variable}_${count}`
      this.#literals.set(value, literal)
    }
    this.#findings.add(path, `a literal key: give it to the workers as the variable ${literal}`)
    return this.refer(literal)
  }

  /** Whether the configuration uses a variable of this name itself. */
  #isForeign(name: string): boolean {
    const { credential_list = [], environment_variables = {}, model_list = [] } = this.#config
    const keys = [
      ...model_list.map(({ litellm_params }) => litellm_params.api_key),
      ...credential_list.map(({ credential_values }) => credential_values.api_key)
    ]
    return Object.hasOwn(environment_variables, name) || keys.includes(`os.environ/${name}`)
  }

  /** The text of a setting, or the value of the variable that it names; `undefined` if that variable is not set. */
  resolve(text: string): string | undefined {
    const name = reference.exec(text)?.[1]
    return name === undefined ? text : this.valueOf(name)
  }
}
