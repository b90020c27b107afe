package dev.nereid.backend.python.memory;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.RecordedLog;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** Memory that a process of Python really maps. */
@EnabledOnOs(OS.LINUX)
class SharedMemoryIT {
    private static final String SCRIPT = """
            import mmap, os, sys
            incoming, outgoing, offset, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
            def open_segment(path):
                descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                for length in (0, os.fstat(descriptor).st_size * 2):
                    try:
                        os.ftruncate(descriptor, length)
                        print("resized")
                    except PermissionError:
                        pass
                return mmap.mmap(descriptor, os.fstat(descriptor).st_size)
            source, target = open_segment(incoming), open_segment(outgoing)
            data = source[offset:offset + size]
            target[0:size] = data[::-1]
            source[offset] = 77
            print("done", sum(data))
            """;

    @Test
    void sharesMemoryWithPython() throws IOException, InterruptedException {
        List<String> paths = new ArrayList<>();
        MemoryBudget budget = new MemoryBudget(1 << 24);
        SharedMemory memory = new SharedMemory(
                writer -> {
                    FrameReader frame = new FrameReader()
                            .of(writer.frame(), 0, writer.frame().byteSize());
                    if (frame.type() == FrameType.SEGMENT) {
                        frame.u64("size");
                        frame.u64("slot size");
                        paths.add(frame.text("path"));
                    }
                },
                budget,
                new RecordedLog(),
                new FakeClock());
        allocate(memory, 300_000).discard();
        IncomingSlot first = allocate(memory, 300_000);
        IncomingSlot slot = allocate(memory, 300_000);
        byte[] content = new byte[300_000];
        long sum = 0;
        for (int i = 0; i < content.length; i++) {
            content[i] = (byte) (i * 31);
            sum += Byte.toUnsignedInt(content[i]);
        }
        slot.data().copyFrom(MemorySegment.ofArray(content));
        slot.written();
        memory.onSegmentWanted(1 << 19);

        String output = python(paths.get(0), paths.get(1), String.valueOf(slot.offset()), "300000");
        HeldSlot held = memory.hold(FakeProcess.tensor(2, 0, 300_000), "output");
        HeldSlot passed = memory.hold(FakeProcess.tensor(1, slot.offset(), 300_000), "output");
        memory.close();

        assertThat(slot.offset()).isPositive();
        assertThat(output).isEqualTo("done " + sum + "\n");
        byte[] result = held.data().toArray(ValueLayout.JAVA_BYTE);
        for (int i = 0; i < content.length; i++) {
            assertThat(result[i]).isEqualTo(content[content.length - 1 - i]);
        }
        assertThat(passed.data().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 77);
        held.release();
        passed.release();
        first.discard();
        assertThat(budget.used()).isZero();
    }

    private static IncomingSlot allocate(SharedMemory memory, long size) {
        return requireNonNull(memory.allocate(size));
    }

    private static String python(String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("python3", "-c", SCRIPT));
        command.addAll(List.of(arguments));
        Process started = null;
        try {
            started = new ProcessBuilder(command).redirectErrorStream(true).start();
        } catch (IOException e) {
            assumeTrue(false, "python3 is not installed: " + e.getMessage());
        }
        Process process = requireNonNull(started);
        try {
            String output = new String(process.getInputStream().readAllBytes(), UTF_8);
            assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
            return output;
        } finally {
            process.destroyForcibly();
        }
    }
}
