/** Refuses an edit of the catalogue after which a worker would lack a key or another secret. */
import { Effect, Layer, Option } from "effect"
import { Needs } from "../catalogue/Catalogue.ts"
import * as SecretReference from "../catalogue/SecretReference.ts"
import { ofModels } from "../catalogue/SecretUses.ts"
import type { Workload } from "../contract/Operation.ts"
import { Secrets } from "../provider/transport/Secrets.ts"
import { workerPool } from "../worker/WorkerSettings.ts"

const absenceOf = (reference: string): string => {
  const parsed = SecretReference.parse(reference)
  return parsed?.kind === "file"
    ? `${parsed.path} cannot be read or is empty: correct the path, or create the file`
    : `${parsed?.name} is not set in this process: correct the name, or set the variable and restart the workers`
}

/**
 * For a worker of this workload: it needs the secrets of the models that it serves. A reference that the old catalogue had at the same
 * place is not the edit's mistake: an edit elsewhere takes nothing away.
 */
export const layer = (workload: Workload) =>
  Layer.effect(
    Needs,
    Effect.gen(function*() {
      const secrets = yield* Secrets
      const own = yield* workerPool
      const usesOf = (snapshot: Parameters<typeof ofModels>[0]) =>
        ofModels(snapshot, ({ pool = "default", workload: served }) => served === workload && pool === own)
      return Effect.fnUntraced(function*(to, from) {
        const before = new Map(usesOf(from).map(({ path, reference }) => [JSON.stringify(path), reference]))
        const added = usesOf(to).filter(({ path, reference }) => before.get(JSON.stringify(path)) !== reference)
        const missing = yield* Effect.filter(
          added,
          ({ reference }) => Effect.map(secrets.resolve(reference), Option.isNone)
        )
        return missing.map(({ path, reference }) => ({ path, message: absenceOf(reference) }))
      })
    })
  )
