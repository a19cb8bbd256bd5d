/** Whether images and the actions of workflows are pinned by digest or commit, so that no tag can change what is deployed. */
import { isMap, isScalar, parseAllDocuments, visit } from "yaml"

const pinnedImage = /@sha256:[0-9a-f]{64}$/
const pinnedAction = /@[0-9a-f]{40}$/

/** The gateway's own images: each installation pins them, as `deploy/README.md` says. Kustomize fills in the others. */
const own = /^(registry\.example\.com\/)?model-gateway(-media)?$|^\$\{|^none$/

const imageFault = (image: string): ReadonlyArray<string> =>
  own.test(image) || pinnedImage.test(image) ? [] : [`${image} is not pinned by digest`]

/** Actions of this repository need no pin, because they come with its commit. */
const actionFault = (action: string): ReadonlyArray<string> =>
  action.startsWith("./") || pinnedAction.test(action) ? [] : [`${action} is not pinned by commit`]

/** Images and actions in a workflow, a compose file, a manifest, or the values of a Helm chart (`image: { repository, tag }`). */
const inYaml = (text: string): ReadonlyArray<string> => {
  const faults: Array<string> = []
  for (const document of parseAllDocuments(text)) {
    visit(document, {
      Pair: (_, { key, value }) => {
        if (!isScalar(key)) return
        if (isScalar(value) && typeof value.value === "string") {
          if (key.value === "uses") faults.push(...actionFault(value.value))
          if (key.value === "image") faults.push(...imageFault(value.value))
        }
        if (key.value === "image" && isMap(value) && value.has("repository")) {
          faults.push(...imageFault(`${String(value.get("repository"))}:${String(value.get("tag"))}`))
        }
      }
    })
  }
  return faults
}

/** Bases in a Dockerfile: other stages, or images, whose names may be in an `ARG`. */
const inDockerfile = (text: string): ReadonlyArray<string> => {
  const values = new Map(
    [...text.matchAll(/^ARG (\w+)=(.*)$/gm)].map(([, name, value]) => [`\${${name}}`, value ?? ""])
  )
  const bases = [...text.matchAll(/^FROM (\S+)(?: AS (\S+))?$/gm)]
  const stages = new Set(bases.map(([, , stage]) => stage))
  return bases.flatMap(([, base = ""]) => stages.has(base) ? [] : imageFault(values.get(base) ?? base))
}

/** What is not pinned in a file, by its path. */
export const faults = (path: string, text: string): ReadonlyArray<string> =>
  (path.endsWith("Dockerfile") ? inDockerfile(text) : inYaml(text)).map((fault) => `${path}: ${fault}`)
