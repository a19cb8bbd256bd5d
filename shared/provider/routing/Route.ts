/**
 * Finds the candidates for a request and their order: the model's targets by priority, then those of its fallbacks. Within one priority
 * each request draws a random order by weight, unless `Affinity.ts` keeps its session at one target.
 */
import type { Random } from "effect"
import type { Snapshot } from "../../catalogue/Catalogue.ts"
import { isIdempotent, sendsCacheKey } from "../../catalogue/Provider.ts"
import { type Continues, isOff, type Sticky } from "../../catalogue/Model.ts"
import type { Workload } from "../../contract/Operation.ts"
import { keyOf, type Target } from "../health/Target.ts"

/** A model at a provider that may be called for a request. */
export interface Candidate extends Target {
  readonly workload: Workload
  readonly weight: number
  /** The context window in tokens; `undefined` if unknown. */
  readonly contextWindow?: number | undefined
  /** How the target continues an answer that has broken off; `undefined` if it cannot. */
  readonly continues?: Continues | undefined
}

export interface Route {
  /** Groups of candidates, tried one after another, without duplicates. Empty if all are switched off. */
  readonly stages: ReadonlyArray<ReadonlyArray<Candidate>>
  /** The order of all candidates, if it is the same for all requests. */
  readonly order: ReadonlyArray<Candidate> | undefined
  /** What keeps requests at one target of a stage; `none` if no stage has several, and no provider takes the session's id. */
  readonly sticky: Sticky
  /** Whether an answer that breaks off is continued. */
  readonly continuation: boolean
  /** Whether every target's provider is idempotent; see the catalogue's `idempotent`. */
  readonly isIdempotent: boolean
}

/** The routes of each catalogue, made on first use. */
const known = new WeakMap<Snapshot, Map<string, Route>>()

/** The route of a model; `undefined` if there is no such model. */
export const routeOf = (snapshot: Snapshot, model: string): Route | undefined => {
  let routes = known.get(snapshot)
  if (routes === undefined) known.set(snapshot, routes = new Map())
  let route = routes.get(model)
  if (route === undefined && snapshot.models.has(model)) routes.set(model, route = makeRoute(snapshot, model))
  return route
}

const makeRoute = (snapshot: Snapshot, name: string): Route => {
  const seen = new Set<string>()
  const stages = stagesOf(snapshot, name, seen)
  const all = stages.flat()
  const takesSession = all.some(({ endpoint }) => sendsCacheKey(endpoint.provider))
  const isFixed = stages.every(({ length }) => length === 1)
  return {
    stages,
    order: isFixed ? all : undefined,
    sticky: isFixed && !takesSession
      ? "none"
      : snapshot.models.get(name)?.sticky ?? stickyByDefault(stages, takesSession),
    continuation: snapshot.models.get(name)?.continuation === true,
    isIdempotent: all.every(({ endpoint }) => isIdempotent(endpoint.provider))
  }
}

/** Whether a candidate caches prompts: all providers of chat models do; the built-in engine has nothing to cache. */
const caches = ({ endpoint, workload }: Candidate): boolean =>
  workload === "chat" && endpoint.provider.protocol !== "local"

const stickyByDefault = (stages: Route["stages"], takesSession: boolean): Sticky =>
  takesSession || stages.some((stage) => stage.filter(caches).length > 1) ? "session" : "none"

const stagesOf = (
  snapshot: Snapshot,
  name: string,
  seen: Set<string>
): ReadonlyArray<ReadonlyArray<Candidate>> => {
  const model = snapshot.models.get(name)
  if (model === undefined || model.disabled === true) return []
  const byPriority = new Map<number, Array<Candidate>>()
  for (const target of model.targets) {
    const {
      contextWindow = model.contextWindow,
      continues,
      model: alias = name,
      priority = 0,
      provider: providerName,
      weight = 1
    } = target
    const provider = snapshot.providers.get(providerName)
    const key = keyOf(providerName, alias)
    if (provider === undefined || isOff(provider, model, target) || seen.has(key)) continue
    seen.add(key)
    const stage = byPriority.get(priority) ?? []
    const timeouts = [
      { of: `a target of the model '${name}'`, timeouts: target.timeouts ?? {} },
      { of: `the model '${name}'`, timeouts: model.timeouts ?? {} }
    ]
    const endpoint = { name: providerName, provider, model: alias, timeouts }
    stage.push({ key, weight, workload: model.workload, contextWindow, continues, endpoint })
    byPriority.set(priority, stage)
  }
  const own = [...byPriority].toSorted(([a], [b]) => a - b).map(([, stage]) => stage)
  return [...own, ...(model.fallbacks ?? []).flatMap((fallback) => stagesOf(snapshot, fallback, seen))]
}

/** A random order for one request. */
export const inOrder = ({ order, stages }: Route, random: typeof Random.Random.Service): ReadonlyArray<Candidate> =>
  order ?? stages.flatMap((stage) => byWeight(stage, () => random.nextDoubleUnsafe()))

/** Orders candidates so that each comes first in proportion to its weight. `draw`: a number from 0 to below 1 for each. */
export const byWeight = (
  stage: ReadonlyArray<Candidate>,
  draw: (candidate: Candidate) => number
): ReadonlyArray<Candidate> =>
  stage
    .map((candidate) => ({ candidate, at: -Math.log(1 - draw(candidate)) / candidate.weight }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ candidate }) => candidate)
