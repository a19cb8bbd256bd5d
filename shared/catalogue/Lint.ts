/** Finds settings of a catalogue that are valid but probably unintended. */
import { Effect } from "effect"
import { enumerate } from "../contract/Expectation.ts"
import { operations } from "../contract/operations/operations.ts"
import type { Snapshot } from "./Catalogue.ts"
import type { Finding } from "./Inconsistencies.ts"
import { isOff, type Model, type Target, targetsOf } from "./Model.ts"
import { defaultTimeouts, isIdempotent, protocols, type Provider, type Timeouts } from "./Provider.ts"
import * as SecretReference from "./SecretReference.ts"
import { ofGuardrail, ofProvider } from "./SecretUses.ts"

/** Whether the gateway can serve an operation by this protocol. */
type Serves = (protocol: Provider["protocol"], operation: string) => boolean

/** What the check needs to know about the gateway's code and the machine on which it runs. */
export interface Environment {
  readonly serves: Serves
  readonly hasVariable: (name: string) => boolean
  readonly hasFile: (path: string) => Effect.Effect<boolean>
  /** Whether this npm package is installed. */
  readonly hasPackage: (name: string) => boolean
  /** How long a request may wait in the queue, in milliseconds. */
  readonly queueTimeoutMs: number
}

/** A remark; `isDeliberate` if it only lists what the operator has switched off. */
export interface Remark extends Finding {
  readonly isDeliberate?: boolean
}

/** Returns the remarks, first about providers, then about models. */
export const lint = Effect.fn("Lint.lint")(function*(snapshot: Snapshot, surroundings: Environment) {
  const remarks: Array<Remark> = []
  for (const [name, provider] of snapshot.providers) {
    for (const { path, reference } of ofProvider(name, provider)) {
      const message = yield* secretRemark(reference, surroundings)
      if (message !== undefined) remarks.push({ path, message })
    }
    if (provider.redispatch !== undefined) {
      const message = `is deprecated: write \`idempotent: ${isIdempotent(provider)}\` instead`
      remarks.push({ path: ["providers", name, "redispatch"], message })
    }
    remarks.push(...packageRemarks(name, provider, surroundings))
    remarks.push(...limitRemarks(name, provider))
    remarks.push(...timeoutRemarks(["providers", name], provider.timeouts, surroundings))
  }
  const guardrails = [...snapshot.models.keys()].flatMap((name) => ofGuardrail(snapshot, name))
  for (const { path, reference } of new Map(guardrails.map((use) => [JSON.stringify(use.path), use])).values()) {
    const message = yield* secretRemark(reference, surroundings)
    if (message !== undefined) remarks.push({ path, message })
  }
  remarks.push(...unusedProviders(snapshot), ...switchedOff(snapshot))
  for (const [name, model] of snapshot.models) {
    for (const { path, settings, targets } of levelsOf(name, model)) {
      remarks.push(...timeoutRemarks(path, settings, surroundings))
      remarks.push(...packageTimeoutRemarks(snapshot, path, settings, targets))
    }
    remarks.push(...protocolRemarks(snapshot, name, model, surroundings))
    remarks.push(...fallbackRemarks(snapshot, name, model))
    remarks.push(...contextRemarks(snapshot, name, model))
    remarks.push(...continuationRemarks(snapshot, name, model))
  }
  return remarks
})

const secretRemark = Effect.fnUntraced(function*(text: string, { hasFile, hasVariable }: Environment) {
  const reference = SecretReference.parse(text)
  if (reference === undefined) return undefined
  if (reference.kind === "variable") {
    return hasVariable(reference.name) ? undefined : `${reference.name} is not set here`
  }
  return (yield* hasFile(reference.path)) ? undefined : `${reference.path} cannot be read here`
})

const packageRemarks = (
  provider: string,
  { options, protocol }: Provider,
  { hasPackage }: Environment
): ReadonlyArray<Finding> => {
  const name = protocol === "ai-sdk" ? options?.["package"] : undefined
  if (typeof name !== "string" || hasPackage(name)) return []
  const message = `'${name}' is not installed here: npm install --save-exact ${name}`
  return [{ path: ["providers", provider, "options", "package"], message }]
}

/** Remarks on limits that have no effect because another one is stricter. */
const limitRemarks = (name: string, { limits = {}, timeouts }: Provider): ReadonlyArray<Finding> => {
  const { concurrency, requestsPerMinute, tokensPerMinute } = limits
  const remarks: Array<Finding> = []
  if (requestsPerMinute !== undefined && tokensPerMinute !== undefined && requestsPerMinute >= tokensPerMinute) {
    remarks.push({
      path: ["providers", name, "limits", "requestsPerMinute"],
      message: `can never apply: no request takes less than one of the ${tokensPerMinute} tokens per minute`
    })
  }
  // a call lasts at most its timeout, so concurrency cannot exceed the calls started within that time
  const totalMinutes = Math.ceil((timeouts?.totalMs ?? defaultTimeouts.totalMs) / 60_000)
  if (concurrency !== undefined && requestsPerMinute !== undefined && concurrency > requestsPerMinute * totalMinutes) {
    remarks.push({
      path: ["providers", name, "limits", "concurrency"],
      message:
        `can never apply: at ${requestsPerMinute} requests per minute and at most ${totalMinutes} minutes each, ` +
        `there are never more than ${requestsPerMinute * totalMinutes} at once`
    })
  }
  return remarks
}

/** The places where a model sets time limits, and the targets to which each applies. */
const levelsOf = (name: string, model: Model) => [
  { path: ["models", name], settings: model.timeouts, targets: model.targets },
  ...model.targets.map((target, index) => ({
    path: ["models", name, "targets", index],
    settings: target.timeouts,
    targets: [target]
  }))
]

/** Remarks on timeouts that leave no time for a retry. */
const timeoutRemarks = (
  path: Finding["path"],
  { firstTokenMs = 0 }: Timeouts = {},
  { queueTimeoutMs }: Environment
): ReadonlyArray<Finding> =>
  firstTokenMs <= queueTimeoutMs ? [] : [{
    path: [...path, "timeouts", "firstTokenMs"],
    message: `is longer than GATEWAY_QUEUE_TIMEOUT_MS, ${queueTimeoutMs}: a request is not retried after it`
  }]

/** Remarks on timeouts that a package applies only for all of its provider's models. */
const packageTimeoutRemarks = (
  { providers }: Snapshot,
  path: Finding["path"],
  settings: Timeouts | undefined,
  targets: ReadonlyArray<Target>
): ReadonlyArray<Finding> =>
  targets.every(({ provider }) => providers.get(provider)?.protocol === "ai-sdk")
    ? (["firstByteMs", "idleMs"] as const).filter((name) => settings?.[name] !== undefined).map((name) => ({
      path: [...path, "timeouts", name],
      message: "has no effect: with the protocol ai-sdk it applies only where the provider sets it"
    }))
    : []

/** Remarks on fallbacks with a smaller context window, which reject the model's longest requests. */
const contextRemarks = ({ models }: Snapshot, name: string, model: Model): ReadonlyArray<Finding> => {
  const windowsOf = ({ contextWindow: usual, targets }: Model) =>
    targets.map(({ contextWindow = usual }) => contextWindow)
  const own = Math.min(...windowsOf(model).map((window) => window ?? Infinity))
  return (model.fallbacks ?? []).flatMap((fallback, index): ReadonlyArray<Finding> => {
    const other = models.get(fallback)
    const largest = other === undefined ? Infinity : Math.max(...windowsOf(other).map((window) => window ?? Infinity))
    return largest >= own || own === Infinity ? [] : [{
      path: ["models", name, "fallbacks", index],
      message: `has a smaller context window, ${largest} tokens instead of ${own}: it rejects the longest requests`
    }]
  })
}

/** Remarks on continuations that never happen, or that are requested in a way that the provider does not know. */
const continuationRemarks = ({ models, providers }: Snapshot, name: string, model: Model): ReadonlyArray<Finding> => {
  const path = ["models", name]
  const unknown = model.targets.flatMap(({ continues = "assistant", provider }, index): ReadonlyArray<Finding> => {
    const protocol = providers.get(provider)?.protocol
    return continues === "assistant" || protocol === "openai" || protocol === undefined ? [] : [{
      path: [...path, "targets", index, "continues"],
      message: `has the effect of \`assistant\`: only the protocol openai has \`${continues}\``
    }]
  })
  const isPossible = model.workload === "chat" &&
    [...targetsOf(models, name)].some(({ target }) => target.continues !== undefined)
  return model.continuation !== true || isPossible
    ? unknown
    : [...unknown, { path: [...path, "continuation"], message: "has no effect: no chat target has `continues`" }]
}

const unusedProviders = ({ models, providers }: Snapshot): ReadonlyArray<Finding> => {
  const used = new Set([...models.values()].flatMap(({ targets }) => targets.map(({ provider }) => provider)))
  return [...providers.keys()]
    .filter((name) => !used.has(name))
    .map((name) => ({ path: ["providers", name], message: "no model uses it" }))
}

/** What the operator has switched off, and the models that no target serves because of it. */
const switchedOff = ({ models, providers }: Snapshot): ReadonlyArray<Remark> => {
  const off = (...path: Remark["path"]): Remark => ({ path, message: "is switched off", isDeliberate: true })
  /** Whether a target is on. As in routing, a fallback that is off has no fallbacks either. */
  const isServed = (name: string): boolean => {
    const model = models.get(name)
    return model !== undefined && model.disabled !== true && (
      model.targets.some((target) => !isOff(providers.get(target.provider), model, target)) ||
      (model.fallbacks ?? []).some(isServed)
    )
  }
  return [
    ...[...providers].flatMap(([name, { disabled }]) => disabled === true ? [off("providers", name, "disabled")] : []),
    ...[...models].flatMap(([name, model]) => {
      if (model.disabled === true) return [off("models", name, "disabled")]
      const own = model.targets.flatMap(({ disabled, weight }, index) =>
        disabled === true || weight === 0 ? [off("models", name, "targets", index)] : []
      )
      const path = ["models", name]
      return isServed(name)
        ? own
        : [...own, {
          path,
          message: "answers 503 `model_disabled`: all its targets are switched off",
          isDeliberate: true
        }]
    })
  ]
}

/** The protocols of a model's targets and fallbacks. */
const protocolsOf = (
  { models, providers }: Snapshot,
  { fallbacks = [], targets }: Model
): ReadonlyArray<Provider["protocol"]> => [
  ...targets.flatMap(({ provider }) => providers.get(provider)?.protocol ?? []),
  ...fallbacks.flatMap((fallback) => {
    const other = models.get(fallback)
    return other === undefined ? [] : protocolsOf({ models, providers }, other)
  })
]

/** Remarks on targets that serve no request for their model, and on operations that no target of the model serves. */
const protocolRemarks = (
  snapshot: Snapshot,
  name: string,
  model: Model,
  { serves }: Environment
): ReadonlyArray<Finding> => {
  const { targets, workload } = model
  const possible = operations.filter(({ workloads }) => workloads.includes(workload))
  const useless = targets.flatMap(({ provider }, index): ReadonlyArray<Finding> => {
    const protocol = snapshot.providers.get(provider)?.protocol
    return protocol === undefined || possible.some(({ name }) => serves(protocol, name)) ? [] : [{
      path: ["models", name, "targets", index, "provider"],
      message: `can never answer: the protocol ${protocol} serves no operation of the workload ${workload}`
    }]
  })
  const available = new Set(protocolsOf(snapshot, model))
  // without operations that only some providers have: most models are not made for them
  const usual = possible.filter(({ needsProvider }) => needsProvider !== true).map(({ name }) => name)
  const missing = usual.filter((operation) => ![...available].some((protocol) => serves(protocol, operation)))
  if (missing.length === usual.length) return useless
  const groups = Map.groupBy(
    missing,
    (operation) => enumerate(protocols.filter((protocol) => serves(protocol, operation)), "or")
  )
  return [
    ...useless,
    ...[...groups].map(([needed, operations]): Finding => ({
      path: ["models", name, "targets"],
      message: `no target serves ${enumerate(operations, "or")}: that needs the protocol ${needed}`
    }))
  ]
}

/** Remarks on fallbacks that add nothing, because all their targets are tried before. */
const fallbackRemarks = ({ models }: Snapshot, name: string, model: Model): ReadonlyArray<Finding> => {
  const tried = new Set<string>()
  /** Whether this model, or one of its fallbacks, adds a new target. */
  const adds = (name: string, { fallbacks = [], targets }: Model): boolean => {
    const before = tried.size
    for (const target of targets) tried.add(JSON.stringify([target.provider, target.model ?? name]))
    for (const fallback of fallbacks) {
      const other = models.get(fallback)
      if (other !== undefined) adds(fallback, other)
    }
    return tried.size > before
  }
  adds(name, { ...model, fallbacks: [] })
  return (model.fallbacks ?? []).flatMap((fallback, index) => {
    const other = models.get(fallback)
    return other === undefined || adds(fallback, other)
      ? []
      : [{
        path: ["models", name, "fallbacks", index],
        message: `is never reached: every target of '${fallback}' is tried before it`
      }]
  })
}
