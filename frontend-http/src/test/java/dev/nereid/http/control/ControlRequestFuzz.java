package dev.nereid.http.control;

import com.code_intelligence.jazzer.junit.DictionaryEntries;
import com.code_intelligence.jazzer.junit.FuzzTest;
import dev.nereid.testkit.ReaderProbe;
import java.lang.foreign.MemorySegment;

/** Reads or refuses any body of load, unload and index requests. */
class ControlRequestFuzz {
    /** Mostly of the fuzzer, which records compared strings. */
    private static final int HEAP_PER_BYTE = 1000;

    private static final int HEAP = 1 << 20;

    @FuzzTest
    @DictionaryEntries({
        "{\"parameters\":{",
        "\"config\":\"",
        "\"file:1/x\":\"AAEC\"",
        "\"unload_dependents\":",
        "{\"ready\":",
        "true",
        "=="
    })
    void readsOrRefuses(byte[] json) {
        MemorySegment body = MemorySegment.ofArray(json);
        run(json.length, () -> ControlRequests.load("m", body));
        run(json.length, () -> ControlRequests.unloadDependents(body));
        run(json.length, () -> ControlRequests.readyOnly(body));
    }

    private static void run(int length, Runnable read) {
        new ReaderProbe(0, (long) HEAP_PER_BYTE * length + HEAP).run(memory -> read.run());
    }
}
