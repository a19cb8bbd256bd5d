/**
 * The manifests on an API server: strict validation, `restricted` pods, image defaults, and the guide's order of applying them.
 *
 * Needs etcd, kube-apiserver and kubectl.
 */
import { Effect, FileSystem } from "effect"
import { join } from "node:path"
import { parseAllDocuments } from "yaml"
import type { Document } from "../../fixture/deploy/Manifests.ts"
import { podsOf } from "../../fixture/deploy/Pods.ts"
import { check } from "../checks/Checks.ts"
import { ControlPlane } from "../control-plane/ControlPlane.ts"
import { installDefinitions, kubectl, kustomize } from "../control-plane/Kubectl.ts"
import { Wrong } from "../checks/Wrong.ts"

const overlays = ["minimal", "production"]

const dryRun = ["--dry-run=server", "--validate=strict"]

const documentsIn = (yaml: string): ReadonlyArray<Document> =>
  parseAllDocuments(yaml).map((document) => document.toJS() as Document)

/** The pods that a Deployment's or Job's controller would create. */
const podsIn = (documents: ReadonlyArray<Document>) =>
  podsOf(documents).map(({ labels, name, spec }) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "model-gateway", labels },
    spec
  }))

type Pod = ReturnType<typeof podsIn>[number]

interface AdmittedPod {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly containers: ReadonlyArray<{ readonly image: string; readonly imagePullPolicy: string }> }
}

/** The pods as the API server admits them, with its defaults. */
const admit = Effect.fn("admit")(function*(pods: ReadonlyArray<Pod>) {
  const list = { apiVersion: "v1", kind: "List", items: pods }
  const yaml = yield* kubectl(["create", ...dryRun, "-o", "yaml", "-f", "-"], JSON.stringify(list))
  return parseAllDocuments(yaml).map((document) => document.toJS() as AdmittedPod)
})

/** Fails unless the command is refused with this text. */
const refused = Effect.fn("refused")(function*<A, E extends Error, R>(command: Effect.Effect<A, E, R>, text: string) {
  const message = yield* Effect.match(command, { onSuccess: () => "", onFailure: ({ message }) => message })
  if (message === "") return yield* new Wrong({ what: `not refused: ${text}` })
  if (!message.includes(text)) return yield* new Wrong({ what: `refused, but not for "${text}": ${message}` })
})

/** Installs the definitions and creates the namespaces as the guide does, and lets `restricted` warn of workloads, too. */
const prepare = Effect.gen(function*() {
  const definitions = yield* installDefinitions
  yield* kubectl(["create", "namespace", "nats"])
  yield* kubectl(["apply", "-f", join(import.meta.dirname, "../../../deploy/kubernetes/base/namespace.yaml")])
  yield* kubectl(["label", "namespace", "model-gateway", "pod-security.kubernetes.io/warn=restricted"])
  return `${definitions} definitions, namespaces nats and model-gateway`
})

const validate = Effect.fn("validate")(function*(overlay: string) {
  const yaml = yield* kustomize(`overlays/${overlay}`)
  yield* kubectl(["apply", "--server-side", ...dryRun, "-f", "-"], yaml)
  return `${documentsIn(yaml).length} objects, no warning`
})

/** The kind, name and version of each object in the file. kubectl calls some configured that the server does not change. */
const versionsOf = Effect.fn("versionsOf")(function*(file: string) {
  const path = "{range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{'\\n'}{end}"
  return (yield* kubectl(["get", "-f", file, "-o", `jsonpath=${path}`])).trim().split("\n")
})

/** Applies an overlay as in the guide, and then again, which must change nothing. */
const apply = Effect.fn("apply")(function*(overlay: string) {
  const { folder } = yield* ControlPlane
  const fs = yield* FileSystem.FileSystem
  const file = join(folder, `${overlay}.yaml`)
  yield* fs.writeFileString(file, yield* kustomize(`overlays/${overlay}`))
  yield* kubectl(["delete", "job", "provision", "-n", "model-gateway", "--ignore-not-found"])
  yield* kubectl(["apply", "-f", file, "--selector", "!app.kubernetes.io/component"])
  yield* kubectl(["apply", "-f", file, "--selector", "app.kubernetes.io/component=provision"])
  yield* kubectl(["apply", "-f", file])
  const before = yield* versionsOf(file)
  yield* kubectl(["apply", "-f", file])
  const after = yield* versionsOf(file)
  const changed = after.filter((line) => !before.includes(line))
  if (changed.length > 0) return yield* new Wrong({ what: `changed when applied again: ${changed.join(", ")}` })
  return `${after.length} objects, the same when applied again`
})

/** An image without a tag, or with `latest`, is looked for in the registry at each start. */
const checkImages = Effect.fn("checkImages")(function*(overlay: string) {
  const pods = yield* admit(podsIn(documentsIn(yield* kustomize(`overlays/${overlay}`))))
  for (const { metadata, spec } of pods) {
    for (const { image, imagePullPolicy } of spec.containers) {
      if (imagePullPolicy !== "IfNotPresent") {
        return yield* new Wrong({ what: `${metadata.name}: ${image} is pulled ${imagePullPolicy}` })
      }
    }
  }
  return `${pods.length} pods admitted by restricted, images pulled if not present`
})

/** Shows that the checks above would have failed. */
const findFaults = Effect.gen(function*() {
  const yaml = yield* kustomize("overlays/minimal")
  const misspelt = yaml.replaceAll("readinessProbe:", "readynessProbe:")
  yield* refused(kubectl(["apply", "--server-side", ...dryRun, "-f", "-"], misspelt), "readynessProbe")
  const [pod] = podsIn(documentsIn(yaml))
  if (pod === undefined) return yield* new Wrong({ what: "minimal has no pod" })
  const { securityContext: _, ...open } = pod.spec
  yield* refused(admit([{ ...pod, spec: open as Pod["spec"] }]), "violates PodSecurity")
  const containers = pod.spec.containers.map((container) => ({ ...container, image: "model-gateway" }))
  const [untagged] = yield* admit([{ ...pod, spec: { ...pod.spec, containers } }])
  const policy = untagged?.spec.containers[0]?.imagePullPolicy
  if (policy !== "Always") return yield* new Wrong({ what: `an image without tag is pulled ${policy}` })
  return "a misspelt field and a pod that is not restricted refused, an image without tag would be pulled always"
})

export const manifests = Effect.gen(function*() {
  yield* check("namespaces and definitions", prepare)
  for (const overlay of overlays) yield* check(`${overlay}: strict validation by the server`, validate(overlay))
  for (const overlay of overlays) yield* check(`${overlay}: applied in the guide's order`, apply(overlay))
  for (const overlay of overlays) yield* check(`${overlay}: pods`, checkImages(overlay))
  yield* check("faults are found", findFaults)
})
