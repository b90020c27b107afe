package dev.nereid.distribution.report;

import dev.nereid.api.ModelMetadata;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import inference.ModelConfig;
import inference.ModelSequenceBatching.Control;
import java.util.List;
import java.util.Optional;
import java.util.StringJoiner;
import java.util.regex.Pattern;
import java.util.stream.LongStream;

/**
 * Writes a {@code curl} command line that sends an inference request to a model. Immutable.
 *
 * <p>There is none for a model with a name that no URL path has, or with inputs beyond the limit of a request.
 */
public final class CurlExample {
    /** Longer inputs are not written out: the command line generates them. */
    private static final long MAX_WRITTEN = 64;

    /** Maximum elements of all inputs. As JSON, more of them exceed the default of {@code --http-max-input-size}. */
    private static final long MAX_ELEMENTS = 16 << 20;

    /** Maximum elements of an input with counted values, which fit every type of integer. */
    private static final long MAX_COUNTED = 12;

    private static final int COUNTED_STEP = 10;

    /** Names that a URL and a shell leave as they are. Escapes in paths are not decoded, as by the reference server. */
    private static final Pattern PATH_SEGMENT = Pattern.compile("[\\w.~-]+");

    /** An id that clients are unlikely to use. It fits every type of ids. */
    private static final String SEQUENCE_ID = "1999999999";

    /** Content of the inputs. */
    public enum Values {
        /** Zeros, valid for every model. */
        ZEROS,
        /** Small numbers for short inputs of integers. They are 10, 20, 30 for the first, 1, 2, 3 for any other. */
        COUNTED
    }

    private final String address;
    private final Values values;

    /** Creates examples for a server at {@code http://host:port}, with the content of inputs. */
    CurlExample(String address, Values values) {
        this.address = address;
        this.values = values;
    }

    /** Returns the command line for a model without sequences; empty if there is none. */
    Optional<String> line(ModelMetadata model) {
        return line(model, "");
    }

    /**
     * Returns the command line for a model, which sends a sequence of one request if the model has sequences; empty if there
     * is none.
     */
    Optional<String> line(ModelMetadata model, ModelConfig config) {
        if (!config.hasSequenceBatching()) {
            return line(model);
        }
        boolean text = config.getSequenceBatching().getControlInputList().stream()
                .flatMap(input -> input.getControlList().stream())
                .anyMatch(control -> control.getKind() == Control.Kind.CONTROL_SEQUENCE_CORRID
                        && control.getDataType() == inference.DataType.TYPE_STRING);
        return line(
                model,
                "\"parameters\": {\"sequence_id\": " + (text ? "\"" + SEQUENCE_ID + "\"" : SEQUENCE_ID)
                        + ", \"sequence_start\": true, \"sequence_end\": true}, ");
    }

    private Optional<String> line(ModelMetadata model, String parameters) {
        List<Shape> shapes =
                model.inputs().stream().map(input -> shape(input, model)).toList();
        if (!isSmall(shapes) || !PATH_SEGMENT.matcher(model.name()).matches()) {
            return Optional.empty();
        }
        ShellText body = new ShellText();
        body.text("{" + parameters + "\"inputs\": [");
        for (int i = 0; i < model.inputs().size(); i++) {
            TensorSpec input = model.inputs().get(i);
            Shape shape = shapes.get(i);
            body.text((i == 0 ? "" : ", ") + "{\"name\": " + quoted(input.name()) + ", \"datatype\": \"" + input.type()
                    + "\", \"shape\": " + shape.toString().replace(",", ", ") + ", \"data\": [");
            data(body, input.type(), shape.elementCount(), i);
            body.text("]}");
        }
        body.text("]}");
        return Optional.of(body.sentTo("curl -s " + address + "/v2/models/" + model.name() + "/infer"));
    }

    /** Returns whether inputs have few elements together. Counts with limits, since products may exceed 64 bits. */
    private static boolean isSmall(List<Shape> shapes) {
        long left = MAX_ELEMENTS;
        for (Shape shape : shapes) {
            long count = 1;
            for (long dim : shape.toArray()) {
                if (dim > left / count) {
                    return false;
                }
                count = Math.max(1, count * dim);
            }
            left -= count;
            if (left < 0) {
                return false;
            }
        }
        return true;
    }

    private void data(ShellText body, DataType type, long count, int index) {
        String zero = zero(type);
        if (count > MAX_WRITTEN) {
            body.output("yes '" + zero + "' | head -n " + count + " | paste -sd, -");
            return;
        }
        boolean counted = values == Values.COUNTED && isInteger(type) && count <= MAX_COUNTED;
        int step = index == 0 ? COUNTED_STEP : 1;
        StringJoiner written = new StringJoiner(", ");
        LongStream.rangeClosed(1, count).forEach(i -> written.add(counted ? String.valueOf(i * step) : zero));
        body.text(written.toString());
    }

    private static Shape shape(TensorSpec input, ModelMetadata model) {
        long[] dims = input.dims().toArray();
        for (int i = 0; i < dims.length; i++) {
            dims[i] = dims[i] == Shape.VARIABLE ? 1 : dims[i];
        }
        Shape item = Shape.of(dims);
        boolean batched = model.maxBatchSize() > 0 && !input.is(TensorSpec.Trait.SHAPE_TENSOR);
        return batched ? item.prepend(1) : item;
    }

    private static String zero(DataType type) {
        return switch (type) {
            case BOOL -> "false";
            case BYTES -> "\"\"";
            case FP16, BF16, FP32, FP64 -> "0.0";
            case UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64 -> "0";
        };
    }

    private static boolean isInteger(DataType type) {
        return switch (type) {
            case UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64 -> true;
            case BOOL, BYTES, FP16, BF16, FP32, FP64 -> false;
        };
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (isControl(c)) {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }

    /** Returns whether a character moves the cursor of a terminal, changes the direction of text, or is half of one. */
    private static boolean isControl(char c) {
        return switch (Character.getType(c)) {
            case Character.CONTROL,
                    Character.FORMAT,
                    Character.SURROGATE,
                    Character.LINE_SEPARATOR,
                    Character.PARAGRAPH_SEPARATOR -> true;
            default -> false;
        };
    }
}
