package dev.nereid.examples.sequence;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.List;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A sum for each id of a sequence, which the control input CORRID has. START begins with the input; END adds the id to
 * the sum. Confined to the instance.
 */
final class OldestSums implements SequenceSums {
    /** As the reference server reads the number of a text: what follows the number does not count. */
    private static final Pattern NUMBER = Pattern.compile("\\s*([+-]?\\d+).*", Pattern.DOTALL);

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final String start;
    private final String end;
    private final String id;

    private final Sums<Sequence.Id> sums = new Sums<>();

    /**
     * Makes sums without sequences.
     *
     * @param start the control input that is not 0 for the first request of a sequence
     * @param end the control input that is not 0 for the last request of a sequence
     * @param id the control input with the id of the sequence, a number or a text
     */
    OldestSums(String start, String end, String id) {
        this.start = start;
        this.end = end;
        this.id = id;
    }

    /** Returns a source of sums for the instances of a model. */
    static Supplier<SequenceSums> of(ModelSettings settings) {
        List<DataType> flag = List.of(DataType.INT32);
        String start = Controls.name(settings, ControlInput.Kind.SEQUENCE_START, flag);
        String end = Controls.name(settings, ControlInput.Kind.SEQUENCE_END, flag);
        String id =
                Controls.name(settings, ControlInput.Kind.SEQUENCE_CORRID, List.of(DataType.UINT64, DataType.BYTES));
        return () -> new OldestSums(start, end, id);
    }

    @Override
    public void add(InferenceRequest request, int place) {
        if (request.isNullRequest()) {
            return;
        }
        Sequence.Id sequence = id(request.requireInput(id));
        int number = number(sequence);
        boolean ends = Controls.isSet(request, end);
        sums.add(request, sequence, Controls.isSet(request, start), ends ? number : 0);
        if (ends) {
            sums.remove(sequence);
        }
    }

    @Override
    public void forget(Sequence.Id sequence) {
        sums.remove(sequence);
    }

    private static Sequence.Id id(Tensor control) {
        return control.type() == DataType.BYTES
                ? new Sequence.Id.Text(control.strings().getFirst())
                : new Sequence.Id.Numeric(control.data().get(LONG, 0));
    }

    /** Returns the number that the end of a sequence adds: the low 32 bits of a number, or the number in a text. */
    private static int number(Sequence.Id id) {
        return switch (id) {
            case Sequence.Id.Numeric(long value) -> (int) value;
            case Sequence.Id.Text(String value) -> {
                Matcher matcher = NUMBER.matcher(value);
                try {
                    if (matcher.matches()) {
                        yield Integer.parseInt(matcher.group(1));
                    }
                } catch (NumberFormatException ignored) {
                    // refused below, together with texts that are no numbers
                }
                throw new BackendException(
                        ErrorCode.INVALID_ARGUMENT,
                        "dyna sequence backend expects correlation ID to be decodable into an integer (expected: one of"
                                + " 32 bits)");
            }
        };
    }
}
