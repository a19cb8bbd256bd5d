/** The settings that an import does not carry over, by path, each with advice. */
import { formatPath } from "../../../shared/contract/SchemaErrors.ts"

type Path = ReadonlyArray<PropertyKey>

export interface Finding {
  readonly path: Path
  readonly message: string
}

/** Collects findings. Those with the same message and field, for example in many models, become one line. */
export class Findings {
  readonly #found: Array<Finding> = []

  add(path: Path, message: string): void {
    this.#found.push({ path, message })
  }

  get all(): ReadonlyArray<Finding> {
    return this.#found
  }

  /** `FILE:LINE path: message`, and `model_list[0, 3].model_info.id` for the same finding about several entries. */
  format(file: string, lineOf: (path: Path) => number): ReadonlyArray<string> {
    const groups = Map.groupBy(this.#found, ({ message, path }) => {
      const [, ...rest] = splitAtIndex(path)
      return JSON.stringify([...rest.map(formatPath), path[0], message])
    })
    return [...groups.values()].flatMap((group) => {
      const [first] = group
      if (first === undefined) return []
      return `${file}:${lineOf(first.path)} ${pathOfAll(group.map(({ path }) => path))}: ${first.message}`
    })
  }
}

/** The parts of a path before and after its first index; the second part is missing if there is no index. */
const splitAtIndex = (path: Path): ReadonlyArray<Path> => {
  const at = path.findIndex((key) => typeof key === "number")
  return at === -1 ? [path] : [path.slice(0, at), path.slice(at + 1)]
}

const pathOfAll = (paths: ReadonlyArray<Path>): string => {
  const [first = []] = paths
  const [before = [], after] = splitAtIndex(first)
  if (after === undefined) return formatPath(first)
  const indexes = new Set(paths.map((path) => String(path[before.length])))
  const rest = formatPath(after)
  const separator = rest === "" || rest.startsWith("[") ? "" : "."
  return `${formatPath(before)}[${[...indexes].join(", ")}]${separator}${rest}`
}
