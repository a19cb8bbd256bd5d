/** A workload as a coloured badge. */
import { Badge } from "@mantine/core"
import type { Workload as Name } from "../../../../shared/contract/Operation.ts"

const colors: Record<Name, string> = {
  chat: "iris",
  images: "pink",
  video: "grape",
  embeddings: "cyan",
  rerank: "orange",
  speech: "teal"
}

export const Workload = ({ name }: { readonly name: Name }) => (
  <Badge color={colors[name]} variant="light" tt="none">{name}</Badge>
)
