/** Text to take away. */
import { ActionIcon, Box, Button, CopyButton, Tooltip } from "@mantine/core"
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

/** Code in a block, with a button in its corner. */
export const CodeBlock = ({ label, text }: { readonly text: string; readonly label: string }) => (
  <Box pos="relative" className="card" bg="var(--console-canvas)" p="sm" pr={48}>
    <Box mah={420} style={{ overflow: "auto" }} tabIndex={0} role="region" aria-label={label}>
      <pre className="pre">{text}</pre>
    </Box>
    <CopyButton value={text} timeout={1_500}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "Copied" : "Copy"}>
          <ActionIcon
            pos="absolute"
            top={8}
            right={8}
            variant="default"
            aria-label={`Copy: ${label}`}
            onClick={copy}
          >
            {copied ? <CheckIcon /> : <CopyIcon />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  </Box>
)
