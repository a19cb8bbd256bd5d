/** Copy buttons, alone and with the text that they copy. */
import { ActionIcon, type ActionIconProps, Box, Button, CopyButton, Group, Text, Tooltip } from "@mantine/core"
import { CheckIcon, CopyIcon } from "@radix-ui/react-icons"

export const Copy = ({ label, value }: { readonly value: string; readonly label: string }) => (
  <CopyButton value={value} timeout={1_500}>
    {({ copied, copy }) => (
      <Button
        variant={copied ? "light" : "filled"}
        color={copied ? "teal" : "iris"}
        leftSection={copied ? <CheckIcon /> : <CopyIcon />}
        onClick={copy}
      >
        {copied ? "Copied" : label}
      </Button>
    )}
  </CopyButton>
)

const CopyIconButton = ({ label, value, ...props }: ActionIconProps & {
  readonly value: string
  readonly label: string
}) => (
  <CopyButton value={value} timeout={1_500}>
    {({ copied, copy }) => (
      <Tooltip label={copied ? "Copied" : "Copy"}>
        <ActionIcon {...props} aria-label={copied ? "Copied" : label} onClick={copy}>
          {copied ? <CheckIcon /> : <CopyIcon />}
        </ActionIcon>
      </Tooltip>
    )}
  </CopyButton>
)

/** An inline id with a copy button. */
export const Id = ({ label, value }: { readonly value: string; readonly label: string }) => (
  <Group gap={4} wrap="nowrap" miw={0}>
    <Text size="sm" className="mono" style={{ overflowWrap: "anywhere" }}>{value}</Text>
    <CopyIconButton size="sm" variant="subtle" color="gray" label={label} value={value} />
  </Group>
)

/** A code block with a copy button. */
export const CodeBlock = ({ label, text }: { readonly text: string; readonly label: string }) => (
  <Box pos="relative" className="card" bg="var(--console-canvas)" p="sm" pr={48}>
    <Box mah={420} style={{ overflow: "auto" }} tabIndex={0} role="region" aria-label={label}>
      <pre className="pre">{text}</pre>
    </Box>
    <CopyIconButton pos="absolute" top={8} right={8} variant="default" label={`Copy: ${label}`} value={text} />
  </Box>
)
