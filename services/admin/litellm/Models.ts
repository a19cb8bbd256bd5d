/** LiteLLM's model groups, aliases and fallbacks as models of the catalogue. */
import type { Facts } from "../../../shared/catalogue/Facts.ts"
import type { Model, Target } from "../../../shared/catalogue/Model.ts"
import type { Config, Fallbacks } from "./Config.ts"
import type { Findings } from "./Findings.ts"
import type { ImportedTarget } from "./Targets.ts"

type Path = ReadonlyArray<PropertyKey>

/** A model while fallbacks are added. */
type Draft = { -readonly [Name in keyof Model]: Model[Name] }

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/** The rank of each deployment's `order`; those without one come last. */
const ranksOf = (targets: ReadonlyArray<ImportedTarget>): ReadonlyArray<number> => {
  const orders = targets.map(({ deployment }) => deployment.litellm_params.order ?? Infinity)
  const ranks = [...new Set(orders)].toSorted((a, b) => a - b)
  return orders.map((order) => ranks.indexOf(order))
}

/** LiteLLM's weights of deployments: the first of these parameters that any of them has, or else equal weights. */
const weightsOf = (targets: ReadonlyArray<ImportedTarget>): ReadonlyArray<number> => {
  for (const name of ["weight", "rpm", "tpm"] as const) {
    const weights = targets.map(({ deployment }) => deployment.litellm_params[name] ?? 0)
    if (weights.some((weight) => weight > 0)) return weights
  }
  return targets.map(() => 1)
}

const greatestDivisor = (a: number, b: number): number => b === 0 ? a : greatestDivisor(b, a % b)

/** Priorities and weights of the targets of one group. A weight of 0 means: only if all others have failed. */
const placed = (group: ReadonlyArray<ImportedTarget>): ReadonlyArray<Target> => {
  const ranks = ranksOf(group)
  const stages = [...new Set(ranks)].toSorted((a, b) => a - b)
  let priority = 0
  const targets: Array<Target> = []
  for (const stage of stages) {
    const members = group.filter((_, index) => ranks[index] === stage)
    const weights = weightsOf(members)
    const divisor = weights.every((weight) => Number.isInteger(weight)) ? weights.reduce(greatestDivisor, 0) : 1
    for (const isReserve of [false, true]) {
      const chosen = members.flatMap(({ target }, index) => {
        const weight = (weights[index] ?? 0) / divisor
        return (weight === 0) === isReserve ? [{ target, weight: weight === 0 ? 1 : weight }] : []
      })
      if (chosen.length === 0) continue
      const isEven = chosen.every(({ weight }) => weight === chosen[0]?.weight)
      for (const { target, weight } of chosen) {
        targets.push({ ...target, ...(isEven ? {} : { weight }), ...(priority === 0 ? {} : { priority }) })
      }
      priority += 1
    }
  }
  return targets
}

/** A model of the group's targets. A context window or price that differs between targets is stated at each target. */
const modelOf = (group: readonly [ImportedTarget, ...Array<ImportedTarget>]): Draft => {
  const [{ facts: first, workload }] = group
  const isCommon = (name: "contextWindow" | "price") => group.every(({ facts }) => isSame(facts[name], first[name]))
  const { contextWindow, price, ...others } = Object.assign(
    {},
    ...group.map(({ facts }) => facts).toReversed()
  ) as Facts
  const own = ({ facts }: ImportedTarget) => ({
    ...(isCommon("contextWindow") || facts.contextWindow === undefined ? {} : { contextWindow: facts.contextWindow }),
    ...(isCommon("price") || facts.price === undefined ? {} : { price: facts.price })
  })
  const description = group.find(({ deployment }) => deployment.model_info?.description)?.deployment.model_info
    ?.description
  return {
    workload,
    ...(description === undefined ? {} : { description }),
    targets: placed(group.map((one) => ({ ...one, target: { ...one.target, ...own(one) } }))) as Model["targets"],
    ...(isCommon("contextWindow") && contextWindow !== undefined ? { contextWindow } : {}),
    ...others,
    ...(isCommon("price") && price !== undefined ? { price } : {})
  }
}

/** The models by name. `imported` holds the deployments that the gateway can reach. */
export const importModels = (
  config: Config,
  imported: ReadonlyArray<ImportedTarget>,
  findings: Findings
): ReadonlyMap<string, Model> => {
  const models = new Map<string, Draft>()
  for (const [name, targets] of Map.groupBy(imported, ({ deployment }) => deployment.model_name)) {
    const [first, ...others] = targets
    if (first === undefined) continue
    const group: [ImportedTarget, ...Array<ImportedTarget>] = [first]
    for (const one of others) {
      if (one.workload !== first.workload) {
        const message =
          `not imported: another deployment of '${name}' is of the workload ${first.workload}, this of ${one.workload}`
        findings.add(one.path, message)
      } else if (group.some(({ target }) => isSame(target, one.target))) {
        findings.add(one.path, "not imported: another deployment is the same")
      } else group.push(one)
    }
    models.set(name, modelOf(group))
  }
  const origins = addAliases(config, models, findings)
  addFallbacks(config, models, origins, findings)
  return models
}

/** Returns the model that each alias stands for. */
const addAliases = (config: Config, models: Map<string, Draft>, findings: Findings): ReadonlyMap<string, string> => {
  const origins = new Map<string, string>()
  for (const [alias, to] of Object.entries(config.router_settings?.model_group_alias ?? {})) {
    const path = ["router_settings", "model_group_alias", alias]
    const name = typeof to === "string" ? to : to.model
    const model = models.get(name)
    if (models.has(alias)) findings.add(path, "not imported: a model has this name")
    else if (model === undefined) findings.add(path, `not imported: there is no model '${name}'`)
    else {
      models.set(alias, { ...model })
      origins.set(alias, name)
    }
  }
  return origins
}

/** One entry of a list of fallbacks. */
interface Fallback {
  readonly name: string
  readonly path: Path
}

/** A setting with fallbacks of some models, or of all. */
interface Section {
  readonly path: Path
  readonly lists: Fallbacks | undefined
  readonly all: ReadonlyArray<string>
}

/** All lists of fallbacks by model. The list of `*` applies to every model without its own. */
const listsIn = (sections: ReadonlyArray<Section>): ReadonlyMap<string, ReadonlyArray<Fallback>> => {
  const found = new Map<string, Array<Fallback>>()
  const add = (model: string, names: ReadonlyArray<string | { readonly model: string }>, path: Path) =>
    found.set(model, [
      ...found.get(model) ?? [],
      ...names.map((name, index) => ({ name: typeof name === "string" ? name : name.model, path: [...path, index] }))
    ])
  for (const { all, lists, path } of sections) {
    for (const [index, list] of lists?.entries() ?? []) {
      for (const [model, names] of Object.entries(list)) add(model, names, [...path, index, model])
    }
    add("*", all, path)
  }
  return found
}

const addFallbacks = (
  config: Config,
  models: Map<string, Draft>,
  origins: ReadonlyMap<string, string>,
  findings: Findings
): void => {
  const lists = listsIn(
    (["router_settings", "litellm_settings"] as const).flatMap((section): ReadonlyArray<Section> => {
      const { context_window_fallbacks, default_fallbacks = [], fallbacks } = config[section] ?? {}
      return [
        { path: [section, "fallbacks"], lists: fallbacks, all: [] },
        { path: [section, "default_fallbacks"], lists: [], all: default_fallbacks },
        { path: [section, "context_window_fallbacks"], lists: context_window_fallbacks, all: [] }
      ]
    })
  )
  for (const [model, list] of lists) {
    if (model === "*" || models.has(model)) continue
    for (const { path } of list) findings.add(path, `not imported: there is no model '${model}'`)
  }
  const unused = new Set(lists.get("*"))
  const general = new Set<Fallback>()
  const before = new Map([...models].map(([name, model]) => [name, { ...model }]))
  for (const [name, model] of models) {
    const origin = origins.get(name)
    const isDefault = !lists.has(name) && (origin === undefined || !lists.has(origin))
    const wanted = lists.get(name) ?? lists.get(origin ?? "") ?? lists.get("*") ?? []
    const usable: Array<string> = []
    for (const one of wanted) {
      const { name: fallback, path } = one
      const other = models.get(fallback)
      if (fallback === name || usable.includes(fallback)) {
        if (!isDefault) findings.add(path, "no effect: it is tried before")
      } else if (other === undefined) {
        if (!isDefault) findings.add(path, `not imported: there is no model '${fallback}'`)
      } else if (other.workload === model.workload) {
        usable.push(fallback)
        unused.delete(one)
        if (path[1] === "context_window_fallbacks") general.add(one)
      } else if (!isDefault) {
        findings.add(
          path,
          `not imported: '${fallback}' is of the workload ${other.workload}, '${name}' of ${model.workload}`
        )
      }
    }
    // LiteLLM allows two models to fall back to each other
    if (usable.every((fallback) => !reaches(models, fallback, name))) {
      if (usable.length > 0) model.fallbacks = usable
      continue
    }
    model.targets = [
      ...model.targets,
      ...inlined(model, usable.map((fallback) => before.get(fallback)))
    ] as Draft["targets"]
  }
  for (const { path } of general) {
    findings.add(path, "imported for every failure, not only for requests that are too long")
  }
  for (const { path } of unused) findings.add(path, "not imported: no model can fall back to it")
}

/** Whether the fallbacks so far lead from one model to another. */
const reaches = (models: ReadonlyMap<string, Model>, from: string, to: string): boolean => {
  const seen = new Set<string>()
  const search = (name: string): boolean => {
    if (name === to) return true
    if (seen.has(name)) return false
    seen.add(name)
    return models.get(name)?.fallbacks?.some(search) ?? false
  }
  return search(from)
}

/** The targets of the fallbacks, with priorities after those of the model's own targets. */
const inlined = (model: Model, others: ReadonlyArray<Model | undefined>): ReadonlyArray<Target> => {
  let next = 1 + Math.max(...model.targets.map(({ priority = 0 }) => priority))
  return others.flatMap((other) => {
    if (other === undefined) return []
    const first = next
    const targets = other.targets.map((target): Target => ({
      ...target,
      priority: first + (target.priority ?? 0),
      ...(target.contextWindow ?? other.contextWindow) === undefined
        ? {}
        : { contextWindow: target.contextWindow ?? other.contextWindow as number },
      ...(target.price ?? other.price) === undefined
        ? {}
        : { price: target.price ?? other.price as Facts["price"] & object }
    }))
    next = 1 + Math.max(...targets.map(({ priority = 0 }) => priority))
    return targets
  })
}
