package dev.nereid.backend.python.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;

/** Keeps frames that are sent to a process, and makes frames of one. Safe for use by any thread. */
final class SentFrames implements FrameSink {
    private final Queue<FrameReader> frames = new ConcurrentLinkedQueue<>();

    @Override
    public void send(FrameWriter frame) {
        frames.add(reader(frame));
    }

    /** Removes the oldest frame. */
    FrameReader next(int type) {
        FrameReader frame = frames.remove();
        assertThat(frame.type()).isEqualTo(type);
        return frame;
    }

    /** Removes the oldest frame, a REPLY, and returns its error; empty for none. */
    String reply(long id) {
        FrameReader frame = next(FrameType.REPLY);
        assertThat(frame.id()).isEqualTo(id);
        double _ = frame.f64("value");
        String error = frame.text("error");
        assertThat(frame.flags()).isEqualTo(error.isEmpty() ? 0 : 1);
        return error;
    }

    /** Removes the oldest frame, a REPLY without an error, and returns its value. */
    double value(long id) {
        FrameReader frame = next(FrameType.REPLY);
        assertThat(frame.id()).isEqualTo(id);
        assertThat(frame.flags()).isZero();
        return frame.f64("value");
    }

    boolean isEmpty() {
        return frames.isEmpty();
    }

    /** Returns a frame. */
    static FrameReader frame(int type, int flags, long id, Consumer<FrameWriter> body) {
        FrameWriter writer = new FrameWriter().begin(type, flags, 0, id);
        body.accept(writer);
        return reader(writer.end());
    }

    private static FrameReader reader(FrameWriter frame) {
        return new FrameReader().of(frame.frame(), 0, frame.size()).copy();
    }
}
