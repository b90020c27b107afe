package dev.nereid.backend.natives;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * The operating system and the processor that this process is built for, by the names that {@code uname} reports.
 * Immutable.
 *
 * @param system the operating system: {@code Linux}, {@code Darwin} or {@code Windows}
 * @param processor the processor, such as {@code x86_64}, {@code aarch64} or {@code arm64}; one that is not known is a
 *     text for errors
 */
public record HostMachine(String system, String processor) {
    private static final String LINUX = "Linux";

    /** The size of a field of {@code struct utsname}: glibc and musl, and macOS. */
    private static final int LINUX_FIELD_BYTES = 65;

    private static final int MACOS_FIELD_BYTES = 256;

    private static final int UTSNAME_BYTES = 5 * MACOS_FIELD_BYTES;
    private static final int MACHINE_FIELD = 4;

    private static final Path LINUX_EXECUTABLE = Path.of("/proc/self/exe");
    /**
     * The offset of the machine in an ELF header. The machine has 2 bytes in its own order; the numbers of two machines
     * follow.
     */
    private static final int ELF_MACHINE = 18;

    private static final int ELF_X86_64 = 62;
    private static final int ELF_AARCH64 = 183;

    /**
     * Returns the machine of this process, whether or not a framework supports it. On Linux the header of its
     * executable determines it, elsewhere its C library. Any thread may call it.
     *
     * <p>The alternatives are worse: system properties can be overridden, and the management bean for the same names
     * takes 10 to 90 ms to start. The first use of foreign functions takes longer still, and the server needs the
     * platform at every start, even if no model needs the backend.
     */
    public static HostMachine current() {
        return ofExecutable(LINUX_EXECUTABLE).orElseGet(HostMachine::ofUname);
    }

    /** Returns the machine in the ELF header of an executable of Linux; empty if there is no such file or header. */
    public static Optional<HostMachine> ofExecutable(Path file) {
        byte[] header;
        try (InputStream in = Files.newInputStream(file)) {
            header = in.readNBytes(ELF_MACHINE + Short.BYTES);
        } catch (IOException e) {
            return Optional.empty(); // not Linux, or a Linux without /proc
        }
        if (header.length < ELF_MACHINE + Short.BYTES || header[1] != 'E' || header[2] != 'L' || header[3] != 'F') {
            return Optional.empty();
        }
        int machine =
                Byte.toUnsignedInt(header[ELF_MACHINE]) | Byte.toUnsignedInt(header[ELF_MACHINE + 1]) << Byte.SIZE;
        return Optional.of(
                switch (machine) {
                    case ELF_X86_64 -> new HostMachine(LINUX, "x86_64");
                    case ELF_AARCH64 -> new HostMachine(LINUX, "aarch64");
                    default -> new HostMachine(LINUX, "(ELF machine " + machine + ")");
                });
    }

    /** Returns the machine that the C library of this process names. */
    static HostMachine ofUname() {
        Linker linker = Linker.nativeLinker();
        Optional<MemorySegment> uname = linker.defaultLookup().find("uname");
        if (uname.isEmpty()) {
            return new HostMachine("Windows", "x86_64"); // the only system without uname, and its usual processor
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment names = arena.allocate(UTSNAME_BYTES);
            callUname(linker, uname.get(), names);
            String system = names.getString(0);
            long field = system.equals(LINUX) ? LINUX_FIELD_BYTES : MACOS_FIELD_BYTES;
            return new HostMachine(system, names.getString(MACHINE_FIELD * field));
        }
    }

    @SuppressWarnings("restricted")
    private static void callUname(Linker linker, MemorySegment uname, MemorySegment names) {
        MethodHandle call =
                linker.downcallHandle(uname, FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS));
        int result;
        try {
            result = (int) call.invokeExact(names);
        } catch (Throwable e) {
            throw new IllegalStateException("uname failed", e);
        }
        if (result < 0) {
            throw new IllegalStateException("uname: " + result + " (expected: >= 0)");
        }
    }
}
