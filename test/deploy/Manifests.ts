/**
 * The manifests of the cluster as `kubectl` renders them, and checks of their schemas that need no cluster.
 *
 * `kubectl` 1.27 or newer, or `kustomize` 5, must be in the PATH; there is no package of either in npm, and Debian's
 * `kubectl` is too old to know components and replacements.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { parseAllDocuments } from "yaml"

export const project = join(import.meta.dirname, "../..")
const folder = join(project, "deploy/kubernetes")

export interface Document {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
  }
  readonly [field: string]: unknown
}

const commands = [["kubectl", "kustomize"], ["kustomize", "build"]] as const

const works = ([program, verb]: readonly [string, string]): boolean =>
  spawnSync(program, [verb, join(folder, "overlays/minimal")], { stdio: "ignore" }).status === 0

const command = commands.find(works)

/** Why nothing can be rendered here, where that is so. */
export const missing: string | undefined = command === undefined
  ? "neither kubectl 1.27 nor kustomize 5 is installed"
  : undefined

const rendered = new Map<string, ReadonlyArray<Document>>()

/** The documents of a folder below `deploy/kubernetes`. */
export const render = (path: string): ReadonlyArray<Document> => {
  const documents = rendered.get(path) ?? renderFolder(join(folder, path))
  rendered.set(path, documents)
  return documents
}

/** The base with a component that no overlay has. */
export const renderWith = (component: string): ReadonlyArray<Document> => {
  const temporary = mkdtempSync(join(tmpdir(), "kustomize-"))
  try {
    const path = (name: string) => relative(temporary, join(folder, name))
    const text = `resources: ["${path("base")}"]\ncomponents: ["${path(`components/${component}`)}"]\n`
    writeFileSync(join(temporary, "kustomization.yaml"), text)
    return renderFolder(temporary)
  } finally {
    rmSync(temporary, { recursive: true })
  }
}

export const renderFolder = (path: string): ReadonlyArray<Document> => {
  if (command === undefined) throw new Error(missing)
  const text = execFileSync(command[0], [command[1], path], { encoding: "utf8" })
  return parseAllDocuments(text).map((document) => {
    if (document.errors.length > 0) throw new Error(`${path}: ${document.errors[0]?.message}`)
    return document.toJS() as Document
  })
}

interface Model {
  validate(): void
}
type Models = Readonly<Record<string, new(document: never) => Model>>

/** Where the types of each group of documents are. */
const groups: Readonly<Record<string, readonly [module: string, load: () => Promise<unknown>]>> = {
  "v1": ["kubernetes-models/v1", () => import("kubernetes-models/v1")],
  "apps/v1": ["kubernetes-models/apps/v1", () => import("kubernetes-models/apps/v1")],
  "autoscaling/v2": ["kubernetes-models/autoscaling/v2", () => import("kubernetes-models/autoscaling/v2")],
  "batch/v1": ["kubernetes-models/batch/v1", () => import("kubernetes-models/batch/v1")],
  "networking.k8s.io/v1": [
    "kubernetes-models/networking.k8s.io/v1",
    () => import("kubernetes-models/networking.k8s.io/v1")
  ],
  "policy/v1": ["kubernetes-models/policy/v1", () => import("kubernetes-models/policy/v1")],
  "keda.sh/v1alpha1": [
    "@kubernetes-models/keda/keda.sh/v1alpha1",
    () => import("@kubernetes-models/keda/keda.sh/v1alpha1")
  ],
  "monitoring.coreos.com/v1": [
    "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
    () => import("@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1")
  ],
  "gateway.networking.k8s.io/v1": [
    "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1",
    () => import("@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1")
  ],
  "cert-manager.io/v1": [
    "@kubernetes-models/cert-manager/cert-manager.io/v1",
    () => import("@kubernetes-models/cert-manager/cert-manager.io/v1")
  ]
}

const groupOf = ({ apiVersion }: Document) => {
  const group = groups[apiVersion]
  if (group === undefined) throw new Error(`there is no schema for ${apiVersion}`)
  return group
}

const nameOf = ({ kind, metadata }: Document): string => `${kind} ${metadata.name}`

/** What the schemas say against the values of the documents: wrong types, missing fields. */
export const wrongValues = async (documents: ReadonlyArray<Document>): Promise<ReadonlyArray<string>> => {
  const mistakes: Array<string> = []
  for (const document of documents) {
    const models = await groupOf(document)[1]() as Models
    const Kind = models[document.kind]
    if (Kind === undefined) throw new Error(`there is no schema for ${document.apiVersion} ${document.kind}`)
    try {
      new Kind(document as never).validate()
    } catch (error) {
      mistakes.push(`${nameOf(document)}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return mistakes
}

/**
 * What the types say against the documents: fields that do not exist, which a cluster would leave out without a word. The
 * compiler finds them in the documents written as literals of their types.
 */
export const unknownFields = (documents: ReadonlyArray<Document>): ReadonlyArray<string> => {
  // below node_modules, so that the compiler finds the packages
  const cache = join(project, "node_modules/.cache")
  mkdirSync(cache, { recursive: true })
  const place = mkdtempSync(join(cache, "manifests-"))
  try {
    const lines = documents.flatMap((document, index) => [
      `import type { I${document.kind} as Kind${index} } from "${groupOf(document)[0]}"`,
      `export const document${index}: Kind${index} = ${JSON.stringify(document)}`
    ])
    writeFileSync(join(place, "documents.ts"), lines.join("\n"))
    const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "esnext"]
    const tsc = join(project, "node_modules/typescript/bin/tsc")
    const { status, stdout } = spawnSync(
      process.execPath,
      [tsc, "--ignoreConfig", ...options, "--types", "", join(place, "documents.ts")],
      { encoding: "utf8", cwd: place }
    )
    if (status === 0) return []
    return stdout.split("\n").filter((line) => /^\S.*error TS/.test(line)).map((line) => {
      const at = Number(/\((\d+),/.exec(line)?.[1])
      const document = documents[Math.floor((at - 1) / 2)]
      return `${document === undefined ? "" : nameOf(document)}: ${line.replace(/^.*error TS\d+: /, "")}`
    })
  } finally {
    rmSync(place, { recursive: true })
  }
}
