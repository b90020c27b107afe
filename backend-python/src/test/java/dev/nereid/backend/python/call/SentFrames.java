package dev.nereid.backend.python.call;

import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.backend.python.frame.FrameTensor;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

/** Reads the frames that are sent to a process, as Python does. Safe for use by any thread. */
final class SentFrames implements FrameSink {
    /** A frame CALL_RESPONSE. */
    record Response(long call, int flags, int code, String text, String parameters, Map<String, Tensor> outputs) {
        boolean isFinal() {
            return (flags & 1) != 0;
        }
    }

    /** A frame REPLY. */
    record Reply(long id, boolean isError, double value, String text) {}

    final List<Response> responses = new CopyOnWriteArrayList<>();
    final List<Reply> replies = new CopyOnWriteArrayList<>();
    private final FakeTensorMemory memory;

    /** {@code true} for each output that lay in a slot, in the order of all outputs. */
    final List<Boolean> inSlots = new CopyOnWriteArrayList<>();

    SentFrames(FakeTensorMemory memory) {
        this.memory = memory;
    }

    @Override
    public void send(FrameWriter writer) {
        byte[] bytes = writer.frame().toArray(ValueLayout.JAVA_BYTE);
        FrameReader frame = new FrameReader().of(MemorySegment.ofArray(bytes), 0, bytes.length);
        if (FrameReader.lengthAt(MemorySegment.ofArray(bytes), 0) != bytes.length) {
            throw new AssertionError("length of a frame");
        }
        if (frame.type() == FrameType.REPLY) {
            replies.add(new Reply(frame.id(), (frame.flags() & 1) != 0, frame.f64("value"), frame.text("text")));
            return;
        }
        frame.u8("zero");
        int code = frame.u8("code");
        int count = frame.u16("outputs");
        frame.u32("zero");
        long textSize = frame.u32("length of the error");
        long parametersSize = frame.u32("length of the parameters");
        String text = frame.text("error", textSize);
        String parameters = frame.text("parameters", parametersSize);
        Map<String, Tensor> outputs = new LinkedHashMap<>();
        List<Boolean> places = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            FrameTensor tensor = frame.tensor("output");
            String name = frame.text("name", tensor.name());
            MemorySegment data = tensor.data();
            if (tensor.segment() != 0) {
                memory.named(tensor.offset());
                data = memory.slots.get(tensor.offset()).asSlice(0, tensor.size());
            }
            places.add(tensor.segment() != 0);
            outputs.put(name, Tensor.of(tensor.type(), tensor.shape(), data));
        }
        if (frame.remaining() > 7) {
            throw new AssertionError(frame.remaining() + " bytes behind the last output");
        }
        inSlots.addAll(places);
        responses.add(new Response(frame.id(), frame.flags(), code, text, parameters, outputs));
    }
}
