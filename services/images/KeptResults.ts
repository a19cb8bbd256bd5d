/** Stores pictures behind signed URLs. */
import { Effect, Layer } from "effect"
import { orUnavailable } from "../../shared/contract/JobError.ts"
import { ResultFiles } from "../../shared/files/ResultFiles.ts"
import { ResultStore } from "../../shared/provider/call/ResultStore.ts"

export const layer = Layer.effect(
  ResultStore,
  Effect.map(ResultFiles, (files) =>
    ResultStore.of({
      keep: (bytes, kind) => orUnavailable(files.keep(bytes, kind))
    }))
).pipe(Layer.provide(ResultFiles.layer))
