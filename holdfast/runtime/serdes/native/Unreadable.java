package holdfast.functions;

/** A value that cannot be read as its type. */
final class Unreadable extends RuntimeException {
    static final Unreadable INSTANCE = new Unreadable();

    private Unreadable() {
        super("a value cannot be read as its type", null, false, false);
    }
}
