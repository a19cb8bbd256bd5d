/** Selects the light, dark or system colour scheme. */
import { SegmentedControl, useMantineColorScheme, VisuallyHidden } from "@mantine/core"
import { DesktopIcon, MoonIcon, SunIcon } from "@radix-ui/react-icons"

const option = (icon: React.ReactNode, label: string) => (
  <>
    <span aria-hidden>{icon}</span>
    <VisuallyHidden>{label}</VisuallyHidden>
  </>
)

export const ColorScheme = () => {
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  return (
    <SegmentedControl
      size="xs"
      fullWidth
      aria-label="Colour scheme"
      value={colorScheme}
      onChange={setColorScheme}
      data={[
        { value: "light", label: option(<SunIcon />, "Light") },
        { value: "dark", label: option(<MoonIcon />, "Dark") },
        { value: "auto", label: option(<DesktopIcon />, "System") }
      ]}
    />
  )
}
