package dev.nereid.backend.python.frame;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class CompletedFrameTest {
    @Test
    void readsAllFields() {
        CompletedFrame frame = CompletedFrame.read(reader(frame(2).end()));

        assertThat(frame)
                .isEqualTo(new CompletedFrame(
                        8,
                        Optional.of(true),
                        "dynamic_batching",
                        List.of(new CompletedFrame.Tensor("IN", "TYPE_FP32", true, List.of(-1L, 4L))),
                        List.of(new CompletedFrame.Tensor("OUT", "TYPE_STRING", false, List.of())),
                        "{}"));
        assertThat(CompletedFrame.read(reader(frame(1).end())).decoupled()).contains(false);
        assertThat(CompletedFrame.read(reader(frame(0).end())).decoupled()).isEmpty();
    }

    @Test
    void refusesWhatDoesNotHaveItsForm() {
        assertThatThrownBy(() -> CompletedFrame.read(reader(frame(3).end())))
                .isInstanceOf(FrameException.class)
                .hasMessage("decoupled: 3 (expected: 0, 1 or 2)");
        assertThatThrownBy(
                        () -> CompletedFrame.read(reader(begin(0).u32(1 << 30).end())))
                .isInstanceOf(FrameException.class)
                .hasMessageStartingWith("inputs: ");
        FrameWriter dims =
                begin(0).u32(1).text("IN").text("TYPE_FP32").u32(0).u32(300).bytes(new byte[300 * 8]);
        assertThatThrownBy(() -> CompletedFrame.read(reader(dims.end())))
                .isInstanceOf(FrameException.class)
                .hasMessageStartingWith("dims: 300");
        FrameWriter whole = frame(1).end();
        byte[] bytes = whole.frame().toArray(ValueLayout.JAVA_BYTE);
        for (int length = FrameType.HEADER_SIZE; length < bytes.length - 8; length++) {
            byte[] part = java.util.Arrays.copyOf(bytes, length);
            assertThatThrownBy(() -> CompletedFrame.read(
                            new FrameReader().of(java.lang.foreign.MemorySegment.ofArray(part), 0, part.length)))
                    .isInstanceOf(FrameException.class);
        }
    }

    private static FrameWriter begin(int decoupled) {
        return new FrameWriter()
                .begin(FrameType.COMPLETED, 0, 0, 1)
                .u64(8)
                .u32(decoupled)
                .text("dynamic_batching");
    }

    private static FrameWriter frame(int decoupled) {
        return begin(decoupled)
                .u32(1)
                .text("IN")
                .text("TYPE_FP32")
                .u32(1)
                .u32(2)
                .u64(-1)
                .u64(4)
                .u32(1)
                .text("OUT")
                .text("TYPE_STRING")
                .u32(0)
                .u32(0)
                .text("{}");
    }

    private static FrameReader reader(FrameWriter frame) {
        return new FrameReader().of(frame.frame(), 0, frame.size());
    }
}
