package dev.nereid.backend.python.call;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** Writes frames CALL as Python does. */
final class CallWriter {
    private final long id;
    private final String model;
    private final List<String> outputs = new ArrayList<>();
    private final Map<String, Object> parameters = new LinkedHashMap<>();
    private final List<Consumer<FrameWriter>> inputs = new ArrayList<>();
    private boolean isStream;
    private long execution;
    private long correlation;
    private String correlationText = "";
    private long timeout;
    private long version = -1;
    private int flags;
    private int window = 1;
    private String requestId = "";

    CallWriter(long id, String model) {
        this.id = id;
        this.model = model;
    }

    CallWriter stream(int sent) {
        isStream = true;
        window = sent;
        return this;
    }

    CallWriter execution(long number) {
        execution = number;
        return this;
    }

    CallWriter sequence(long number, String text, int startEnd) {
        correlation = number;
        correlationText = text;
        flags = startEnd;
        return this;
    }

    CallWriter timeout(long micros) {
        timeout = micros;
        return this;
    }

    CallWriter version(long number) {
        version = number;
        return this;
    }

    CallWriter requestId(String text) {
        requestId = text;
        return this;
    }

    CallWriter output(String name) {
        outputs.add(name);
        return this;
    }

    CallWriter parameter(String name, Object value) {
        parameters.put(name, value);
        return this;
    }

    CallWriter input(String name, Tensor tensor) {
        byte[] encoded = name.getBytes(UTF_8);
        inputs.add(writer -> writer.inlineTensor(encoded.length, tensor).bytes(encoded));
        return this;
    }

    CallWriter slot(String name, DataType type, Shape shape, int segment, long offset, long size) {
        byte[] encoded = name.getBytes(UTF_8);
        inputs.add(writer -> writer.sharedTensor(encoded.length, type, shape, segment, offset, size)
                .bytes(encoded));
        return this;
    }

    byte[] bytes() {
        byte[] name = model.getBytes(UTF_8);
        byte[] text = correlationText.getBytes(UTF_8);
        FrameWriter writer = new FrameWriter()
                .begin(FrameType.CALL, isStream ? 1 : 0, 0, id)
                .u64(execution)
                .u64(correlation)
                .u64(timeout)
                .u64(version)
                .u32(flags)
                .u32(window)
                .u32(0)
                .u16(inputs.size())
                .u16(outputs.size())
                .u16(parameters.size())
                .u8(0)
                .u8(text.length == 0 ? 0 : 1)
                .u32(name.length)
                .u32(requestId.length())
                .u32(text.length)
                .u32(2)
                .bytes(name)
                .bytes(requestId.getBytes(UTF_8))
                .bytes(text)
                .bytes("{}".getBytes(UTF_8));
        outputs.forEach(writer::text);
        parameters.forEach((parameter, value) -> {
            writer.text(parameter);
            switch (value) {
                case Boolean flag -> writer.u8(1).u8(flag ? 1 : 0);
                case Long number -> writer.u8(2).u64(number);
                default -> writer.u8(3).text(value.toString());
            }
        });
        inputs.forEach(input -> input.accept(writer));
        return writer.end().frame().toArray(ValueLayout.JAVA_BYTE);
    }

    FrameReader frame() {
        return reader(bytes());
    }

    static FrameReader reader(byte[] bytes) {
        return new FrameReader().of(MemorySegment.ofArray(bytes), 0, bytes.length);
    }
}
