package dev.nereid.http.json;

import dev.nereid.api.Quoted;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Tracks the path of the current member, for errors. Confined to the thread that reads a request. */
public final class JsonPath {
    /** The members outside of {@code parameters}; all others are within it. */
    private static final Set<String> DIRECT =
            Set.of("name", "shape", "datatype", "data", "inputs", "outputs", "id", "parameters");

    private String list = "";
    private int item;
    private @Nullable String input;

    /** Enters an element of a list of tensors, such as {@code inputs}. */
    public void enter(String tensors, int index) {
        list = tensors;
        item = index;
    }

    /** Enters an input of a {@code generate} request. */
    public void enterInput(String name) {
        input = name;
    }

    /** Leaves the current element or input. */
    public void leave() {
        list = "";
        input = null;
    }

    /** Returns the path of a member of the current element, such as {@code inputs[0].data}. */
    public String to(String member) {
        if (input != null) {
            return Quoted.text(input);
        }
        String parent = list.isEmpty() ? "" : list + "[" + item + "].";
        return parent + (DIRECT.contains(member) ? "" : "parameters.") + Quoted.text(member);
    }
}
