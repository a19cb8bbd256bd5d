/** What a pod refers to, read from the API: variables, and files in a folder of its own. A missing object stops the pod, as in a cluster. */
import { Effect, FileSystem, Schema } from "effect"
import { join } from "node:path"
import { read } from "../control-plane/Api.ts"
import type { ApiPod, PodContainer } from "./ApiPod.ts"

/** A Secret, ConfigMap or claim that a pod refers to is not there. */
export class InputMissing extends Schema.TaggedError<InputMissing>()("InputMissing", { what: Schema.String }) {
  override get message() {
    return this.what
  }
}

export interface Inputs {
  /** Variables from ConfigMaps and Secrets, and the container's own. */
  readonly variables: Readonly<Record<string, string>>
  /** Where the files of a mount path are on this machine. */
  readonly place: (path: string) => string
}

type Data = Readonly<Record<string, string>>

const kinds = { configmaps: "ConfigMap", secrets: "Secret", persistentvolumeclaims: "PersistentVolumeClaim" }

const object = Effect.fn("PodInputs.object")(function*(namespace: string, kind: keyof typeof kinds, name: string) {
  const path = `/api/v1/namespaces/${namespace}/${kind}/${name}`
  return yield* read<{ readonly data?: Data }>(path).pipe(
    Effect.mapError(() => new InputMissing({ what: `${kinds[kind]} ${name} not found` }))
  )
})

const decoded = (data: Data): Data =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]))

/** The entries of a ConfigMap. */
const configMap = (namespace: string, name: string) =>
  Effect.map(object(namespace, "configmaps", name), ({ data = {} }) => data)

/** The entries of a Secret. */
const secret = (namespace: string, name: string) =>
  Effect.map(object(namespace, "secrets", name), ({ data = {} }) => decoded(data))

const variablesOf = Effect.fn("PodInputs.variablesOf")(function*(namespace: string, container: PodContainer) {
  const variables: Record<string, string> = {}
  for (const { configMapRef, secretRef } of container.envFrom ?? []) {
    if (configMapRef !== undefined) Object.assign(variables, yield* configMap(namespace, configMapRef.name))
    if (secretRef !== undefined) {
      const entries = secret(namespace, secretRef.name)
      Object.assign(variables, yield* secretRef.optional === true ? Effect.orElseSucceed(entries, () => ({})) : entries)
    }
  }
  for (const { name, value = "", valueFrom } of container.env ?? []) {
    const { key, name: from } = valueFrom?.secretKeyRef ?? {}
    if (from === undefined || key === undefined) variables[name] = value
    else {
      const entry = (yield* secret(namespace, from))[key]
      if (entry === undefined) return yield* new InputMissing({ what: `Secret ${from} has no key ${key}` })
      variables[name] = entry
    }
  }
  return variables
})

/** Reads all that a pod refers to, and writes its files below the folder. */
export const readInputs = Effect.fn("readInputs")(function*(pod: ApiPod, folder: string) {
  const fs = yield* FileSystem.FileSystem
  const { namespace } = pod.metadata
  const [container] = pod.spec.containers
  if (container === undefined) return yield* new InputMissing({ what: "the pod has no container" })
  const variables = yield* variablesOf(namespace, container)
  const place = (path: string) => join(folder, path)
  for (const { configMap: map, name, persistentVolumeClaim, secret: sealed } of pod.spec.volumes ?? []) {
    if (persistentVolumeClaim !== undefined) {
      yield* object(namespace, "persistentvolumeclaims", persistentVolumeClaim.claimName)
    }
    const entries = map !== undefined
      ? yield* configMap(namespace, map.name)
      : sealed !== undefined
      ? yield* secret(namespace, sealed.secretName)
      : {}
    for (const { mountPath } of container.volumeMounts?.filter((mount) => mount.name === name) ?? []) {
      yield* fs.makeDirectory(place(mountPath), { recursive: true })
      for (const [file, text] of Object.entries(entries)) yield* fs.writeFileString(join(place(mountPath), file), text)
    }
  }
  return { variables, place } satisfies Inputs
})
