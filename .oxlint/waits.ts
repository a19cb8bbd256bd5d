/**
 * A lint rule for tests: no assertion and no wait depends on how fast the machine is. A test waits for an event or, by `eventually`
 * of `test/fixture/general/Eventually.ts`, for a state. Time passes on Effect's test clock or on vitest's fake timers.
 */

interface Node {
  readonly type: string
  readonly parent?: Node | null
  readonly name?: string
  readonly object?: Node
  readonly property?: Node
  readonly callee?: Node
  readonly arguments?: ReadonlyArray<Node>
  readonly source?: { readonly value?: unknown } | null
}
interface Context {
  readonly report: (problem: { readonly message: string; readonly node: Node }) => void
}

const instead = "wait for an event or, with `eventually`, for a state; time passes on a test clock only"

/** `a.b` for a member expression of two names, and the name of an identifier. */
const nameOf = (node: Node | undefined): string =>
  node?.type === "MemberExpression"
    ? `${nameOf(node.object)}.${nameOf(node.property)}`
    : node?.name ?? ""

const clocks: ReadonlySet<string> = new Set(["Date.now", "performance.now", "performance.timeOrigin"])
const timers: ReadonlySet<string> = new Set(["setTimeout", "setInterval"])
const sleeps: ReadonlySet<string> = new Set(["Effect.sleep", "Effect.delay"])

/** Whether the effect runs on the real clock: in a test by `it.live`, or in a promise. */
const runsLive = (node: Node): boolean => {
  for (let above = node.parent; above; above = above.parent) {
    if (above.type !== "CallExpression") continue
    const callee = nameOf(above.callee)
    if (/^it\.(effect|scoped)\b/.test(callee)) return false
    if (/^it\.live\b/.test(callee) || callee === "Effect.runPromise") return true
  }
  return false
}

export default {
  meta: { name: "waits" },
  rules: {
    "real-time": {
      create({ report }: Context) {
        const forbid = (node: Node, what: string) => report({ node, message: `${what}: ${instead}` })
        return {
          ImportDeclaration(node: Node) {
            if (/^(node:)?timers(\/promises)?$/.test(String(node.source?.value))) forbid(node, "this imports timers")
          },
          MemberExpression(node: Node) {
            if (clocks.has(nameOf(node))) forbid(node, `this reads ${nameOf(node)}`)
          },
          NewExpression(node: Node) {
            if (node.callee?.name === "Date" && node.arguments?.length === 0) forbid(node, "this reads the clock")
          },
          CallExpression(node: Node) {
            const callee = nameOf(node.callee)
            if (timers.has(callee)) forbid(node, `this calls ${callee}`)
            if (sleeps.has(callee) && runsLive(node)) forbid(node, "this sleeps for a time")
          }
        }
      }
    }
  }
}
