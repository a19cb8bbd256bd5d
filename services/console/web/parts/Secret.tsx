/** A secret that is shown once, with a button that copies it. */
import { Alert, Group, Text } from "@mantine/core"
import { ExclamationTriangleIcon } from "@radix-ui/react-icons"
import type { ReactNode } from "react"
import { Copy } from "./Copy.tsx"

/** `children` say what to do with it. */
export const Secret = ({ children, copy, onCopy, value }: {
  readonly value: string
  /** The button's label. */
  readonly copy: string
  readonly onCopy?: () => void
  readonly children: ReactNode
}) => (
  <>
    <Alert color="orange" icon={<ExclamationTriangleIcon />} title="Shown once">{children}</Alert>
    <Group className="card" bg="var(--console-canvas)" p="md" gap="md" wrap="wrap" justify="space-between">
      <Text className="mono secret" data-testid="secret" flex="1 1 240px">{value}</Text>
      <span onClickCapture={onCopy}>
        <Copy label={copy} value={value} />
      </span>
    </Group>
  </>
)
