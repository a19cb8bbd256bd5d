/** Logo and name. */
import { Group, Text } from "@mantine/core"

export const Brand = () => (
  <Group gap={10} wrap="nowrap">
    <svg className="brand-mark" width="28" height="28" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="var(--mantine-color-iris-6)" />
      <path
        d="M8 11h6l4 10h6M8 21h6l1.6-4M18 11h6"
        fill="none"
        stroke="#fff"
        strokeWidth="2.4"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
    <Text fw={650} size="md">Model Gateway</Text>
  </Group>
)
