package dev.nereid.backend.tensorrt.presets;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Deletes an object with a table of virtual functions that the test has made. */
final class NativeObjectsTest {
    private static final int ENTRIES = 12;

    private final List<String> calls = new ArrayList<>();

    @ParameterizedTest
    @ValueSource(ints = {NativeObjects.DESTRUCTOR, NativeObjects.PARSER_DESTRUCTOR})
    void callsTheDestructorOfTheTableWithTheObject(int destructor) throws ReflectiveOperationException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment table = arena.allocate(ValueLayout.ADDRESS, ENTRIES);
            for (int i = 0; i < ENTRIES; i++) {
                table.setAtIndex(ValueLayout.ADDRESS, i, function(i, arena));
            }
            MemorySegment object = arena.allocateFrom(ValueLayout.ADDRESS, table);

            NativeObjects.delete(object.address(), destructor);

            assertThat(calls).containsExactly(destructor + " of " + object.address());
        }
    }

    @SuppressWarnings("restricted") // a function of the test, called from native code
    private MemorySegment function(int place, Arena arena) throws ReflectiveOperationException {
        MethodHandle call = MethodHandles.lookup()
                .findVirtual(NativeObjectsTest.class, "call", MethodType.methodType(void.class, int.class, long.class))
                .bindTo(this);
        return Linker.nativeLinker()
                .upcallStub(
                        MethodHandles.insertArguments(call, 0, place),
                        FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG),
                        arena);
    }

    void call(int place, long object) {
        calls.add(place + " of " + object);
    }
}
