package dev.nereid.scheduler.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.CallOptions;
import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.CheckedCall;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ParameterValue;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Random;
import java.util.TreeMap;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.junit.jupiter.api.Test;

/** Calls of one key are the same call. Names and contents are drawn from few, so that parts run into each other often. */
final class CallDigestProperties {
    @Property(tries = 2000)
    void onlyTheSameCallHasTheSameKey(@ForAll("calls") Call one, @ForAll("calls") Call other) {
        assertThat(CallDigest.of(one.call("1")).equals(CallDigest.of(other.call("2"))))
                .isEqualTo(one.equals(other));
    }

    @Property(tries = 200)
    void theOrderOfInputsIdAndTimesDoNotMatter(@ForAll("calls") Call call, @ForAll Random random) {
        List<Input> inputs = new ArrayList<>(call.inputs.entrySet().stream()
                .map(entry -> entry.getValue().named(entry.getKey()))
                .toList());
        Collections.shuffle(inputs, random);
        CheckedCall shuffled = call.call(
                "other",
                inputs,
                new CallOptions(call.priority, 17, OptionalLong.of(random.nextLong()), Optional.empty()));

        assertThat(CallDigest.of(shuffled)).isEqualTo(CallDigest.of(call.call("")));
    }

    /** Instances of a server, and servers of one Redis, must agree on keys: change this only with the layout. */
    @Test
    void isTheSameEverywhere() {
        Call call = new Call(
                "m",
                1,
                Map.of("IN", new Input("", DataType.INT8, List.of(2L), List.of(1, 2))),
                List.of("OUT"),
                2,
                Map.of("p", new ParameterValue.Int(5)));

        assertThat(CallDigest.of(call.call("")).text()).isEqualTo("7d14e0187eca18aec541015f3ad98e07");
    }

    /** Longer than what the digest is shown at a time. */
    @Test
    void readsLargeInputsToTheEnd() {
        MemorySegment data = Arena.ofAuto().allocate((1 << 20) + 3);
        CheckedCall call = of(data);
        String before = CallDigest.of(call).text();
        data.set(ValueLayout.JAVA_BYTE, data.byteSize() - 1, (byte) 1);

        assertThat(CallDigest.of(call).text()).isNotEqualTo(before);
    }

    private static CheckedCall of(MemorySegment data) {
        Tensor tensor = Tensor.of(DataType.UINT8, Shape.of(data.byteSize()), data);
        return new CheckedCall(
                "m",
                1,
                1,
                "",
                List.of(new NamedTensor("IN", tensor)),
                List.of("OUT"),
                List.of(),
                Map.of(),
                CallOptions.DEFAULT,
                () -> {});
    }

    @Provide
    Arbitrary<Call> calls() {
        Arbitrary<String> names = Arbitraries.of("", "a", "b", "ab", "\u0001", "é");
        Arbitrary<Input> inputs = Combinators.combine(
                        Arbitraries.of(DataType.INT8, DataType.UINT8),
                        Arbitraries.of(List.of(2L), List.of(1L, 2L), List.of(2L, 1L), List.of(1L)),
                        Arbitraries.of(0, 1).list().ofSize(2))
                .as((type, dims, bytes) ->
                        new Input("", type, dims, dims.equals(List.of(1L)) ? bytes.subList(0, 1) : bytes));
        Arbitrary<ParameterValue> parameters = Arbitraries.of(
                new ParameterValue.Bool(true),
                new ParameterValue.Int(1),
                new ParameterValue.Int(-1),
                new ParameterValue.Real(1),
                new ParameterValue.Real(-0.0),
                new ParameterValue.Text("1"),
                new ParameterValue.Text(""));
        return Combinators.combine(
                        Arbitraries.of("m", "ma"),
                        Arbitraries.of(1L, 2L),
                        Arbitraries.maps(names, inputs).ofMaxSize(2),
                        names.list().ofMaxSize(2),
                        Arbitraries.of(0L, 1L, -1L),
                        Arbitraries.maps(names, parameters).ofMaxSize(2))
                .as(Call::new);
    }

    /** An input in a form that is compared by content; the name is empty where a map has it. */
    record Input(String name, DataType type, List<Long> dims, List<Integer> bytes) {
        Input named(String other) {
            return new Input(other, type, dims, bytes);
        }

        NamedTensor tensor() {
            byte[] content = new byte[bytes.size()];
            for (int i = 0; i < content.length; i++) {
                content[i] = bytes.get(i).byteValue();
            }
            MemorySegment data = Arena.ofAuto().allocate(content.length).copyFrom(MemorySegment.ofArray(content));
            Shape shape = Shape.of(dims.stream().mapToLong(Long::longValue).toArray());
            return new NamedTensor(name, Tensor.of(type, shape, data));
        }
    }

    /** What a key stands for. */
    record Call(
            String model,
            long version,
            Map<String, Input> inputs,
            List<String> outputs,
            long priority,
            Map<String, ParameterValue> parameters) {
        CheckedCall call(String id) {
            List<Input> named = new TreeMap<>(inputs)
                    .entrySet().stream()
                            .map(entry -> entry.getValue().named(entry.getKey()))
                            .toList();
            return call(id, named, new CallOptions(priority, 0, OptionalLong.empty(), Optional.empty()));
        }

        CheckedCall call(String id, List<Input> order, CallOptions options) {
            List<NamedTensor> tensors = order.stream().map(Input::tensor).toList();
            return new CheckedCall(model, version, 1, id, tensors, outputs, List.of(), parameters, options, () -> {});
        }
    }
}
